//! Texts of several statements: where one ends and the next one begins.
//!
//! The text is split by the tokenizer that the session parses with, so that a `;` in a string, a
//! quoted name, a comment or between `$$` separates nothing.

use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::dialect::dialect_from_str;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, Tokenizer};

use crate::error::{Error, Result};

/// What a text of statements consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script<'a> {
    /// The statements that end with `;`, without it. Empty ones are left out.
    pub statements: Vec<ScriptStatement<'a>>,
    /// What stands behind the last `;`: the beginning of a statement or, as often in a file, a last
    /// one that needs no `;`. None where that is nothing but space and comments.
    pub rest: Option<ScriptStatement<'a>>,
}

/// A statement in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptStatement<'a> {
    /// The statement without the comments in front of it.
    pub text: &'a str,
    /// The line that it begins in; the first one is 1.
    pub line: usize,
    /// Where it ends in the text, in bytes, its `;` included.
    pub end: usize,
}

impl<'a> Script<'a> {
    /// Splits `text` in the dialect of `ctx` (`datafusion.sql_parser.dialect`).
    ///
    /// A text that breaks off in a string, a quoted name or a comment has that as its
    /// [`rest`](Self::rest), and so has one that goes on with what is no SQL.
    ///
    /// # Errors
    ///
    /// `Invalid` if the session's dialect is none.
    ///
    /// ```
    /// use delta_disjoint::session::script::Script;
    ///
    /// let ctx = delta_disjoint::session();
    /// let script = Script::split(&ctx, "BEGIN; -- then;\nSELECT ';'; COMMIT")?;
    /// let statements: Vec<_> = script.statements.iter().map(|s| (s.line, s.text)).collect();
    /// assert_eq!(statements, [(1, "BEGIN"), (2, "SELECT ';'")]);
    /// assert_eq!(script.rest.map(|rest| rest.text), Some("COMMIT"));
    /// # Ok::<(), delta_disjoint::Error>(())
    /// ```
    pub fn split(ctx: &SessionContext, text: &'a str) -> Result<Self> {
        let name = ctx
            .state_ref()
            .read()
            .config_options()
            .sql_parser
            .dialect
            .to_string();
        let dialect = dialect_from_str(&name)
            .ok_or_else(|| Error::invalid(format!("there is no SQL dialect {name}")))?;
        let mut tokens = Vec::new();
        // Where the tokenizer gives up, the tokens before it are there.
        let gave_up = Tokenizer::new(dialect.as_ref(), text)
            .tokenize_with_location_into_buf(&mut tokens)
            .is_err();

        let mut cursor = Cursor::new(text);
        let mut script = Self {
            statements: Vec::new(),
            rest: None,
        };
        let mut begin: Option<(usize, usize)> = None;
        let mut after = 0;
        for token in &tokens {
            let at = cursor.seek(token.span.start);
            after = after.max(cursor.offset_of(token.span.end));
            match token.token {
                Token::Whitespace(_) | Token::EOF => {}
                // Tokens of a hint in a comment have the place of the comment.
                Token::SemiColon if text[at..].starts_with(';') => {
                    if let Some((start, line)) = begin.take() {
                        script.statements.push(ScriptStatement {
                            text: text[start..at].trim_end(),
                            line,
                            end: at + 1,
                        });
                    }
                }
                _ => {
                    begin.get_or_insert((at, cursor.line));
                }
            }
        }
        if gave_up && begin.is_none() {
            let start = after + leading_space(&text[after..]);
            begin = Some((start, 1 + text[..start].matches('\n').count()));
        }
        script.rest = begin.map(|(start, line)| ScriptStatement {
            text: text[start..].trim_end(),
            line,
            end: text.len(),
        });
        Ok(script)
    }
}

fn leading_space(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// Finds the bytes of the tokenizer's places, which count lines and characters from 1.
#[derive(Debug, Clone)]
struct Cursor<'a> {
    text: &'a str,
    offset: usize,
    line: usize,
    column: usize,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            offset: 0,
            line: 1,
            column: 1,
        }
    }

    /// Goes on to `place`; stays where that lies behind.
    fn seek(&mut self, place: Location) -> usize {
        let place = (
            usize::try_from(place.line).unwrap_or(usize::MAX),
            usize::try_from(place.column).unwrap_or(usize::MAX),
        );
        let mut characters = self.text[self.offset..].chars();
        while (self.line, self.column) < place
            && let Some(character) = characters.next()
        {
            self.offset += character.len_utf8();
            if character == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        self.offset
    }

    fn offset_of(&self, place: Location) -> usize {
        self.clone().seek(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Script<'_> {
        Script::split(&crate::session(), text).expect("splits")
    }

    fn places<'a>(
        statements: impl IntoIterator<Item = ScriptStatement<'a>>,
    ) -> Vec<(usize, &'a str)> {
        let place = |statement: ScriptStatement<'a>| (statement.line, statement.text);
        statements.into_iter().map(place).collect()
    }

    #[test]
    fn only_a_semicolon_between_statements_separates() {
        let cases: [(&str, &[(usize, &str)]); 12] = [
            ("", &[]),
            ("  \n-- nothing;\n/* ; */ ;;", &[]),
            ("SELECT 1;", &[(1, "SELECT 1")]),
            (
                "SELECT 1 ; ;\n\nSELECT 2\n;",
                &[(1, "SELECT 1"), (3, "SELECT 2")],
            ),
            ("SELECT ';';", &[(1, "SELECT ';'")]),
            ("SELECT 'it''s;';", &[(1, "SELECT 'it''s;'")]),
            (
                "SELECT \"a;b\" FROM \"x;\";",
                &[(1, "SELECT \"a;b\" FROM \"x;\"")],
            ),
            ("SELECT $$a;b$$;", &[(1, "SELECT $$a;b$$")]),
            ("SELECT $t$ $$;$$ $t$;", &[(1, "SELECT $t$ $$;$$ $t$")]),
            (
                "-- a;\nSELECT /* ; */ 1 -- ;\n, 2;",
                &[(2, "SELECT /* ; */ 1 -- ;\n, 2")],
            ),
            (
                "SELECT 'ä€😀;';SELECT 'é';",
                &[(1, "SELECT 'ä€😀;'"), (1, "SELECT 'é'")],
            ),
            (
                "SELECT 'two\nlines;' ;\r\nSELECT 3;",
                &[(1, "SELECT 'two\nlines;'"), (3, "SELECT 3")],
            ),
        ];
        for (text, expected) in cases {
            let script = split(text);
            assert_eq!(script.rest, None, "{text}");
            for statement in &script.statements {
                let until = &text[..statement.end];
                assert!(until.ends_with(';'), "{text}: {until}");
                assert!(until.contains(statement.text), "{text}: {until}");
            }
            assert_eq!(places(script.statements), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_ended_is_the_rest() {
        let cases = [
            ("SELECT 1", 0, Some((1, "SELECT 1"))),
            ("SELECT 1; SELECT\n2 ", 1, Some((1, "SELECT\n2"))),
            ("SELECT 1;\n -- done\n", 1, None),
            ("SELECT 1;\nSELECT 'a;", 1, Some((2, "SELECT 'a;"))),
            ("SELECT 1;\n'a;", 1, Some((2, "'a;"))),
            ("SELECT 1; /* a;", 1, Some((1, "/* a;"))),
            ("SELECT \"a;", 0, Some((1, "SELECT \"a;"))),
            ("SELECT $$a;", 0, Some((1, "SELECT $$a;"))),
        ];
        for (text, statements, rest) in cases {
            let script = split(text);
            assert_eq!(script.statements.len(), statements, "{text}");
            assert_eq!(places(script.rest), Vec::from_iter(rest), "{text}");
        }
    }

    #[test]
    fn no_text_is_too_odd() {
        // Every cut of a text with everything in it.
        let text = "BEGIN; SELECT 'é''', \"ü\"\"\" /* a /* b */ c */ -- x\n, $$;$$, 1e5, X'ff';\t;\u{a0}\0";
        for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
            let script = split(&text[..end]);
            let ends = script.statements.iter().chain(&script.rest);
            assert!(ends.map(|statement| statement.end).is_sorted());
        }
    }

    #[tokio::test]
    async fn the_dialect_of_the_session_counts() {
        let ctx = crate::session();
        // In PostgreSQL `#` is an operator, in MySQL it begins a comment.
        let text = "SELECT 1 # 2; SELECT 3\n;";
        let count =
            |ctx: &SessionContext| Script::split(ctx, text).expect("splits").statements.len();
        crate::sql(&ctx, "SET datafusion.sql_parser.dialect = 'PostgreSQL'")
            .await
            .expect("set");
        assert_eq!(count(&ctx), 2);
        crate::sql(&ctx, "SET datafusion.sql_parser.dialect = 'MySQL'")
            .await
            .expect("set");
        assert_eq!(count(&ctx), 1);
    }
}
