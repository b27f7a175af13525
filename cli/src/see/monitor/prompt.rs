//! The prompt: a line editor with history and completion.

use std::cell::RefCell;
use std::path::PathBuf;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Context, Editor, Helper};

use super::Desk;
use crate::failure::{Failure, TOOL};

const PROMPT: &str = "synth> ";
/// Lines that are remembered.
const HISTORY_LINES: usize = 1000;

/// Asks the kernel for names.
struct Names<'a, 'b>(&'a RefCell<&'b mut Desk>);

impl Completer for Names<'_, '_> {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '@' | '.');
        let start = line[..at].rfind(|c| !inside(c)).map_or(0, |before| before + 1);
        Ok((start, self.0.borrow_mut().names(&line[start..at])))
    }
}

impl Hinter for Names<'_, '_> {
    type Hint = String;
}
impl Highlighter for Names<'_, '_> {}
impl Validator for Names<'_, '_> {}
impl Helper for Names<'_, '_> {}

/// Reads lines until `quit` or Ctrl-D; Ctrl-C forgets the line.
pub fn converse(desk: &mut Desk) -> Result<(), Failure> {
    let failed = |error: ReadlineError| Failure::new(TOOL, format!("the terminal cannot be read: {error}"), "");
    let config = Config::builder().max_history_size(HISTORY_LINES).map_err(failed)?.auto_add_history(true).build();
    let desk = RefCell::new(desk);
    let mut editor = Editor::<Names<'_, '_>, FileHistory>::with_config(config).map_err(failed)?;
    editor.set_helper(Some(Names(&desk)));
    let history = history_file();
    if let Some(file) = &history {
        // The first time there is none.
        let _ = editor.load_history(file);
    }
    let result = loop {
        match editor.readline(PROMPT) {
            Ok(line) => match desk.borrow_mut().take(&line, PROMPT) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(failure) => break Err(failure),
            },
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break Ok(()),
            Err(error) => break Err(failed(error)),
        }
    };
    if let Some(file) = &history {
        let _ = editor.save_history(file);
    }
    result
}

/// `$XDG_STATE_HOME/synthesis/monitor_history`, by default below ~/.local/state.
fn history_file() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))?;
    let folder = state.join("synthesis");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("monitor_history"))
}
