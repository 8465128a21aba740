//! What a line at the prompt means.

/// What was entered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Input<'a> {
    /// SQL.
    Statements(&'a str),
    /// `\d`
    Tables,
    /// `\d NAME`
    Columns(&'a str),
    /// `\?` or `help`
    Help,
    /// `\q`, `quit` or `exit`
    Quit,
    /// Another word after a backslash.
    Unknown(&'a str),
}

impl<'a> Input<'a> {
    /// Reads `input`, which may have several lines.
    pub(crate) fn of(input: &'a str) -> Self {
        let line = input.trim();
        let word = line.trim_end_matches([';', ' ']);
        if ["quit", "exit"]
            .iter()
            .any(|w| word.eq_ignore_ascii_case(w))
        {
            return Self::Quit;
        }
        if word.eq_ignore_ascii_case("help") {
            return Self::Help;
        }
        if !line.starts_with('\\') {
            return Self::Statements(input);
        }
        match word.split_once(char::is_whitespace) {
            None if word == "\\d" => Self::Tables,
            None if word == "\\q" => Self::Quit,
            None if word == "\\?" => Self::Help,
            Some(("\\d", table)) => Self::Columns(table.trim()),
            _ => Self::Unknown(word),
        }
    }

    /// Whether it is SQL, which has to be complete before it runs.
    pub(crate) fn is_statements(&self) -> bool {
        matches!(self, Self::Statements(_))
    }
}
