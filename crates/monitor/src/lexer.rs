//! From characters to tokens.

use alloc::vec::Vec;

/// A token; names are slices of the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Token<'a> {
    Number(u64),
    /// Letters, digits, `_`, `$`, `@`, and `.` between them: `pipe.read`, `$x`.
    Name(&'a str),
    /// An operator or a bracket.
    Sign(&'static str),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LexError {
    /// A character that begins nothing, and where.
    Character(char, usize),
    /// A number that does not fit 64 bits or is not one.
    Number(usize),
}

/// Longest first, so that the first that fits is the right one.
pub(crate) const SIGNS: [&str; 40] = [
    "<<=", ">>=", "&&", "||", "<<", ">>", "<=", ">=", "==", "!=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "++",
    "--", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!", "<", ">", "=", "?", ":", "(", ")", ",", "[", "]",
];

/// The tokens with their offsets.
///
/// # Errors
/// The first character that cannot be read.
pub fn tokens(text: &str) -> Result<Vec<(Token<'_>, usize)>, LexError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (token, bytes) = match first {
            _ if first.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            '0'..='9' => number(rest).ok_or(LexError::Number(at))?,
            '\'' => character(rest).ok_or(LexError::Character(first, at))?,
            _ if begins_name(first) => name(rest),
            _ => {
                let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
                let sign = sign.ok_or(LexError::Character(first, at))?;
                (Token::Sign(sign), sign.len())
            }
        };
        tokens.push((token, at));
        at += bytes;
    }
    Ok(tokens)
}

fn begins_name(character: char) -> bool {
    character.is_ascii_alphabetic() || matches!(character, '_' | '$' | '@')
}

fn name(text: &str) -> (Token<'_>, usize) {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '@' | '.');
    let bytes = text.find(|c| !inside(c)).unwrap_or(text.len());
    (Token::Name(&text[..bytes]), bytes)
}

fn number(text: &str) -> Option<(Token<'_>, usize)> {
    let bytes = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let digits = &text[..bytes];
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
        _ => (digits, 10),
    };
    let mut value: u64 = 0;
    let mut any = false;
    for digit in digits.chars().filter(|digit| *digit != '_') {
        value = value.checked_mul(radix.into())?.checked_add(digit.to_digit(radix)?.into())?;
        any = true;
    }
    any.then_some((Token::Number(value), bytes))
}

/// `'c'`, `'\n'`, `'\t'`, `'\0'`, `'\\'`, `'\''`.
fn character(text: &str) -> Option<(Token<'_>, usize)> {
    let bytes = text.as_bytes();
    let (value, end) = match bytes.get(1)? {
        b'\\' => {
            let value = match bytes.get(2)? {
                b'n' => b'\n',
                b't' => b'\t',
                b'0' => 0,
                b'\\' => b'\\',
                b'\'' => b'\'',
                _ => return None,
            };
            (value, 3)
        }
        b'\'' => return None,
        plain if plain.is_ascii() => (*plain, 2),
        _ => return None,
    };
    (bytes.get(end) == Some(&b'\'')).then_some((Token::Number(value.into()), end + 1))
}
