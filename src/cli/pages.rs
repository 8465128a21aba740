//! Completions and man pages, generated from the arguments.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::failure::Failure;
use super::{Arguments, output};

/// Prints completions for a shell.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    delta-disjoint completions bash > ~/.local/share/bash-completion/completions/delta-disjoint\n  \
    delta-disjoint completions zsh > ~/.zfunc/_delta-disjoint\n  \
    delta-disjoint completions fish > ~/.config/fish/completions/delta-disjoint.fish")]
pub(crate) struct CompletionsArguments {
    /// The shell.
    shell: Shell,
}

/// Prints the manual page.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    delta-disjoint man | man -l -\n  \
    delta-disjoint man --out ~/.local/share/man/man1")]
pub(crate) struct ManArguments {
    /// Write the page and one for each subcommand into this directory instead.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn completions(arguments: &CompletionsArguments) -> Result<ExitCode, Failure> {
    let mut command = Arguments::command();
    let name = command.get_name().to_owned();
    // Into memory first: the generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(arguments: &ManArguments) -> Result<ExitCode, Failure> {
    let command = Arguments::command();
    match &arguments.out {
        Some(folder) => {
            std::fs::create_dir_all(folder)
                .and_then(|()| clap_mangen::generate_to(command, folder))
                .map_err(|error| {
                    Failure::statement(format!(
                        "the manual pages cannot be written to {}: {error}",
                        folder.display()
                    ))
                })?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            output::print(&String::from_utf8_lossy(&page))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
