//! What a line at the prompt means; the prompt itself needs a terminal.

#[path = "../../../src/cli/prompt/input.rs"]
mod product;

use self::product::Input;

#[test]
fn commands_are_told_from_statements() {
    let cases = [
        ("SELECT 1;", Input::Statements("SELECT 1;")),
        ("SELECT\n'\\q';", Input::Statements("SELECT\n'\\q';")),
        ("quit_rate", Input::Statements("quit_rate")),
        ("", Input::Statements("")),
        ("\\d", Input::Tables),
        (" \\d ; ", Input::Tables),
        ("\\d orders", Input::Columns("orders")),
        ("\\d  \"Customer ID\";", Input::Columns("\"Customer ID\"")),
        ("\\?", Input::Help),
        ("HELP", Input::Help),
        ("help;", Input::Help),
        ("\\q", Input::Quit),
        ("quit", Input::Quit),
        ("Exit;", Input::Quit),
        ("\\x", Input::Unknown("\\x")),
        ("\\dt t", Input::Unknown("\\dt t")),
    ];
    for (input, expected) in cases {
        assert_eq!(Input::of(input), expected, "{input}");
        let is_statements = matches!(expected, Input::Statements(_));
        assert_eq!(Input::of(input).is_statements(), is_statements, "{input}");
    }
}
