//! Options of the object store, and keeping them out of everything that is printed.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fmt;

use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::dialect::dialect_from_str;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use super::failure::Failure;

/// What stands in the place of a secret.
const HIDDEN: &str = "***";

/// Names of options whose values everybody may see; the values of all others are hidden.
const HARMLESS: [&str; 8] = [
    "region",
    "allow_http",
    "timeout",
    "virtual_hosted_style_request",
    "allow_invalid_certificates",
    "skip_signature",
    "conditional_put",
    "copy_if_not_exists",
];

/// What the names of environment variables with secrets in them contain.
const SECRET_VARIABLES: [&str; 7] = [
    "KEY",
    "SECRET",
    "TOKEN",
    "PASSWORD",
    "SAS",
    "SIGNATURE",
    "CREDENTIAL",
];

/// Prefixes of the environment variables that the object stores read.
const STORE_VARIABLES: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

/// Shorter values are not hidden: they are no secrets, and text would be garbled.
const SHORTEST: usize = 4;

/// Options of the object store by name.
#[derive(Clone, Default)]
pub(crate) struct StorageOptions(HashMap<String, String>);

impl StorageOptions {
    /// Reads `KEY=VALUE` each. The messages show no part of what is wrong, which may be a secret.
    pub(crate) fn parse(given: &[String]) -> Result<Self, Failure> {
        let mut options = HashMap::new();
        for (index, option) in given.iter().enumerate() {
            let number = index + 1;
            let (key, value) = match option.split_once('=') {
                Some((key, value)) if !key.is_empty() => (key.to_ascii_lowercase(), value),
                _ => {
                    return Err(Failure::arguments(format!(
                        "--storage-option number {number} is not KEY=VALUE; its text is not shown, \
                         since it may be a secret"
                    )));
                }
            };
            if options.insert(key, value.to_owned()).is_some() {
                return Err(Failure::arguments(format!(
                    "--storage-option number {number} has the name of an earlier one"
                )));
            }
        }
        Ok(Self(options))
    }

    /// The options, for a table that is opened.
    pub(crate) fn to_map(&self) -> HashMap<String, String> {
        self.0.clone()
    }
}

impl fmt::Debug for StorageOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: BTreeSet<&String> = self.0.keys().collect();
        f.debug_tuple("StorageOptions").field(&names).finish()
    }
}

/// Texts that must not be printed.
#[derive(Clone, Default)]
pub(crate) struct Secrets {
    texts: BTreeSet<String>,
    options_given: usize,
}

impl Secrets {
    /// The secrets among the `arguments` of the command, before they are looked at, and the
    /// `variables` of the environment.
    pub(crate) fn of(
        arguments: &[OsString],
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> Self {
        let mut secrets = Self::default();
        let mut is_option = false;
        for argument in arguments {
            let argument = argument.to_string_lossy();
            if is_option {
                secrets.add_option(&argument);
            } else if let Some(option) = argument.strip_prefix("--storage-option=") {
                secrets.add_option(option);
            }
            is_option = !is_option && argument == "--storage-option";
        }
        for (name, value) in variables {
            let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
            let is_store = STORE_VARIABLES
                .iter()
                .any(|prefix| name.starts_with(prefix));
            let is_secret = SECRET_VARIABLES.iter().any(|part| name.contains(part));
            if is_store && is_secret {
                secrets.add(&value);
            }
        }
        secrets
    }

    /// The secrets in the `OPTIONS (…)` of `text`, a statement in the dialect of `ctx` that may be
    /// no valid SQL, which the parser's message would repeat.
    pub(crate) fn in_options(ctx: &SessionContext, text: &str) -> Self {
        let mut secrets = Self::default();
        let name = ctx
            .state()
            .config()
            .options()
            .sql_parser
            .dialect
            .to_string();
        let Some(dialect) = dialect_from_str(name) else {
            return secrets;
        };
        let mut tokens = Vec::new();
        // Where the tokenizer gives up, the tokens before it are there.
        let _ = Tokenizer::new(dialect.as_ref(), text).tokenize_with_location_into_buf(&mut tokens);
        let tokens: Vec<Token> = tokens
            .into_iter()
            .map(|token| token.token)
            .filter(|token| !matches!(token, Token::Whitespace(_) | Token::EOF))
            .collect();
        for (at, pair) in tokens.windows(2).enumerate() {
            if let [Token::Word(word), Token::LParen] = pair
                && word.value.eq_ignore_ascii_case("OPTIONS")
            {
                secrets.add_options(&tokens[at + 2..]);
            }
        }
        secrets
    }

    /// Adds the values of `key value, key value)`, and whatever stands where it does not belong.
    fn add_options(&mut self, tokens: &[Token]) {
        let mut depth = 1;
        let mut entry = Vec::new();
        for token in tokens {
            match token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            if *token == Token::Comma {
                self.add_entry(&entry);
                entry.clear();
            } else {
                entry.push(token);
            }
        }
        self.add_entry(&entry);
    }

    fn add_entry(&mut self, entry: &[&Token]) {
        let mut key = String::new();
        let mut values = entry;
        // A name in quotes, or words with dots between them.
        while let [token, rest @ ..] = values
            && (key.is_empty() || key.ends_with('.') || **token == Token::Period)
        {
            key.push_str(&content(token));
            values = rest;
        }
        let key = key.to_ascii_lowercase();
        if values.is_empty() {
            // A value whose key got lost, as far as anybody knows.
            self.add(&key);
            entry.iter().for_each(|token| self.add(&content(token)));
        } else {
            let is_harmless =
                key.starts_with("delta.") || HARMLESS.iter().any(|name| key.ends_with(name));
            let values = values.iter().skip(usize::from(is_harmless));
            values.for_each(|token| self.add(&content(token)));
        }
    }

    /// How many options of the object store are among the arguments.
    pub(crate) fn options_given(&self) -> usize {
        self.options_given
    }

    fn add_option(&mut self, option: &str) {
        self.options_given += 1;
        match option.split_once('=') {
            Some((key, value)) => {
                let key = key.to_ascii_lowercase();
                if !HARMLESS.iter().any(|harmless| key.ends_with(harmless)) {
                    self.add(value);
                }
            }
            // Which part of it is the secret, nobody knows.
            None => self.add(option),
        }
    }

    fn add(&mut self, secret: &str) {
        let is_flag = ["true", "false"].contains(&secret);
        if is_flag || secret.chars().count() < SHORTEST {
            return;
        }
        let encoded: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        let debug = format!("{secret:?}");
        self.texts.insert(encoded);
        self.texts.insert(debug.trim_matches('"').to_owned());
        self.texts.insert(secret.replace('\'', "''"));
        self.texts.insert(secret.to_owned());
    }

    /// `text` without the secrets and without names, passwords and queries in URLs.
    pub(crate) fn hide(&self, text: &str) -> String {
        let mut hidden = text.to_owned();
        // Longer ones first: one may be part of another.
        let mut secrets: Vec<&String> = self.texts.iter().collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        for secret in secrets {
            hidden = hidden.replace(secret.as_str(), HIDDEN);
        }
        hide_parts_of_urls(&hidden)
    }

    /// Whether `text` holds what would be hidden.
    pub(crate) fn are_in(&self, text: &str) -> bool {
        self.hide(text) != text
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.texts.len())
    }
}

/// What a token says, without its quotes.
fn content(token: &Token) -> String {
    match token {
        Token::Word(word) => word.value.clone(),
        Token::Number(number, _) => number.clone(),
        Token::DollarQuotedString(string) => string.value.clone(),
        _ => {
            let text = token.to_string();
            let quote = |character| ['\'', '"'].contains(&character);
            match (text.find(quote), text.rfind(quote)) {
                (Some(first), Some(last)) if first < last => text[first + 1..last].to_owned(),
                _ => text,
            }
        }
    }
}

/// Replaces `user:password` of `scheme://user:password@host`, also where the password holds a slash,
/// which it must not, and everything behind its `?`, which may be a signature.
///
/// `container@account`, as Azure's locations begin, stays.
fn hide_parts_of_urls(text: &str) -> String {
    const END_OF_URL: [char; 6] = ['\'', '"', '`', ' ', '\n', '\t'];
    let mut hidden = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + "://".len());
        let may_have_user = ["abfs://", "abfss://", "wasb://", "wasbs://"]
            .iter()
            .any(|scheme| before.ends_with(scheme));
        hidden.push_str(before);
        let url = &after[..after.find(END_OF_URL).unwrap_or(after.len())];
        let authority = &url[..url.find(['/', '?', '#']).unwrap_or(url.len())];
        let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let user = match authority.rfind('@') {
            None if authority
                .rsplit_once(':')
                .is_some_and(|(_, port)| !is_port(port)) =>
            {
                url.rfind('@')
            }
            user => user,
        };
        let mut shown = 0;
        if let Some(user) = user
            && (!may_have_user || url[..user].contains(':'))
        {
            hidden.push_str(HIDDEN);
            shown = user;
        }
        let end = match url[shown..].find('?').map(|query| shown + query + 1) {
            Some(query) if query < url.len() => {
                hidden.push_str(&url[shown..query]);
                hidden.push_str(HIDDEN);
                // Of the sentence around it.
                url.trim_end_matches([':', ',', ';', ')']).len().max(query)
            }
            _ => shown,
        };
        rest = &after[end..];
    }
    hidden + rest
}
