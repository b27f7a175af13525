//! A case: one script that must do the same on the host and on Synthesis; and the data files that list them.

/// The shell that a case's script is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// `busybox sh`, with the applets of the same busybox first in PATH.
    Busybox,
    /// dash with Debian's dynamic tools.
    Dash,
    /// bash with Debian's dynamic tools.
    Bash,
}

impl Shell {
    /// The word that names the shell in the data files and to the driver.
    pub fn word(self) -> &'static str {
        match self {
            Shell::Busybox => "busybox",
            Shell::Dash => "dash",
            Shell::Bash => "bash",
        }
    }

    fn from_word(word: &str) -> Option<Shell> {
        [Shell::Busybox, Shell::Dash, Shell::Bash].into_iter().find(|shell| shell.word() == word)
    }
}

/// One command line (or a few that belong together), what it needs, and its name.
#[derive(Clone, Debug)]
pub struct Case {
    /// `group/behaviour`, unique.
    pub name: String,
    /// Which shell reads the script.
    pub shell: Shell,
    /// Programs beside the shell, found in the host's PATH.
    pub uses: Vec<String>,
    /// Files of the host that programs read, at the same path on both sides; of a folder, what is directly in it.
    pub files: Vec<String>,
    /// Input files that are copied into the case's own folder (see `inputs`).
    pub with: Vec<String>,
    /// What the shell reads.
    pub script: String,
}

/// Reads one data file: cases start with `## name`, then `@shell`, `@uses`, `@files`, `@with` lines, then the script.
///
/// `@default shell WORD` and `@default uses WORDS` hold for the cases after them.
///
/// # Errors
/// A sentence with file and line for a word that is not known, a script that is empty, or text outside a case.
pub fn parse(file: &str, text: &str) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = Vec::new();
    let mut default_shell = Shell::Busybox;
    let mut default_uses: Vec<String> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let at = |message: &str| format!("{file}:{}: {message}", index + 1);
        if let Some(name) = line.strip_prefix("## ") {
            cases.push(Case {
                name: name.trim().into(),
                shell: default_shell,
                uses: default_uses.clone(),
                files: Vec::new(),
                with: Vec::new(),
                script: String::new(),
            });
            continue;
        }
        let shell_of = |word: &str| Shell::from_word(word).ok_or_else(|| at("no such shell"));
        if let Some(words) = line.strip_prefix("@default shell ") {
            default_shell = shell_of(words.trim())?;
        } else if let Some(words) = line.strip_prefix("@default uses ") {
            default_uses = split(words);
        } else if let Some(case) = cases.last_mut() {
            if let Some(word) = line.strip_prefix("@shell ") {
                case.shell = shell_of(word.trim())?;
            } else if let Some(words) = line.strip_prefix("@uses ") {
                case.uses.extend(split(words));
            } else if let Some(words) = line.strip_prefix("@files ") {
                case.files.extend(split(words));
            } else if let Some(words) = line.strip_prefix("@with ") {
                case.with.extend(split(words));
            } else if line.starts_with('@') && case.script.is_empty() {
                return Err(at("no such directive"));
            } else {
                case.script.push_str(line);
                case.script.push('\n');
            }
        } else if !line.trim().is_empty() && !line.starts_with('#') {
            return Err(at("text before the first case"));
        }
    }
    for (index, case) in cases.iter_mut().enumerate() {
        case.script = case.script.trim_matches('\n').to_string() + "\n";
        if case.script.trim().is_empty() {
            return Err(format!("{file}: case {} ({}) has no script", case.name, index + 1));
        }
    }
    Ok(cases)
}

fn split(words: &str) -> Vec<String> {
    words.split_whitespace().map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_has_its_name_needs_and_script() {
        let cases =
            parse("f", "# head\n@default uses sort\n## a/b\n@shell dash\n@with x y\n\nsort x\necho $?\n\n## c\n:\n")
                .expect("parses");
        assert_eq!(cases.len(), 2);
        assert_eq!(cases[0].shell, Shell::Dash);
        assert_eq!(cases[0].uses, ["sort"]);
        assert_eq!(cases[0].with, ["x", "y"]);
        assert_eq!(cases[0].script, "sort x\necho $?\n");
        assert_eq!(cases[1].script, ":\n");
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        assert!(parse("f", "text\n").unwrap_err().contains("f:1"));
        assert!(parse("f", "## a\n@shell fish\n").unwrap_err().contains("f:2"));
        assert!(parse("f", "## a\n@what\n").unwrap_err().contains("f:2"));
        assert!(parse("f", "## a\n\n").unwrap_err().contains("no script"));
    }
}
