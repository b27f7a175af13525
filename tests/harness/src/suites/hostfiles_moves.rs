//! The host moves, removes, replaces and exchanges the directories on a program's way: what the program finds next is what is there.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Stdio;

use means::Random;

use super::hostfiles::Bench;

const ROUNDS: usize = 600;
const LOOKS: usize = 4;
const PATHS: [&str; 4] = ["a/b/f", "a/b/c/g", "l/f", "a/f"];

/// For each line it says what the paths lead to, first as they are and then from the root, a few times, since a way is remembered when it
/// has been gone before.
const LOOK: &str = "python3 -c 'import os, sys\nfor line in sys.stdin:\n\
                    \x20 words = line.split()\n\
                    \x20 for n in range(int(words[0])):\n\
                    \x20   found = []\n\
                    \x20   for path in words[1:] + [os.getcwd() + \"/\" + word for word in words[1:]]:\n\
                    \x20     try: found.append(os.stat(path).st_ino)\n\
                    \x20     except OSError as e: found.append(-e.errno)\n\
                    \x20   print(*found, flush=True)'";

impl Bench {
    pub(super) fn directories_that_move(&self, name: &str) -> Result<(), String> {
        let folder = self.fresh(name, "hosted")?;
        let seed = Random::seed();
        let mut command = self.hosted(&folder, &[], LOOK);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut tool = command.spawn().map_err(|error| error.to_string())?;
        let mut ask = tool.stdin.take().ok_or("no stdin")?;
        let mut answers = BufReader::new(tool.stdout.take().ok_or("no stdout")?).lines();
        let mut random = Random::new(seed);
        let result = (0..ROUNDS).try_for_each(|round| {
            change(&folder, &mut random);
            writeln!(ask, "{LOOKS} {}", PATHS.join(" ")).map_err(|error| error.to_string())?;
            let found = PATHS.map(|path| there(&folder.join(path)));
            let wanted = [found.clone(), found].concat().join(" ");
            for _ in 0..LOOKS {
                let said = answers.next().and_then(Result::ok).unwrap_or_default();
                if said != wanted {
                    return Err(format!("SYNTH_SEED={seed}, round {round}: {said:?}, and the host finds {wanted:?}"));
                }
            }
            Ok(())
        });
        drop(ask);
        let status = tool.wait().map_err(|error| error.to_string())?;
        result.and_then(|()| if status.success() { Ok(()) } else { Err(format!("{status}")) })
    }
}

/// The number of what a path leads to, or the error.
fn there(path: &Path) -> String {
    match fs::metadata(path) {
        Ok(found) => found.ino().to_string(),
        Err(error) => format!("-{}", error.raw_os_error().unwrap_or(0)),
    }
}

/// One change by chance; some do nothing where their names are missing.
fn change(folder: &Path, random: &mut Random) {
    let at = |name: &str| folder.join(name);
    let make = |name: &str| {
        let _ = fs::create_dir_all(at(name).join("b/c"));
        for file in ["f", "b/f", "b/c/g"] {
            let _ = fs::write(at(name).join(file), name);
        }
    };
    let side = ["x", "y", "z"][random.below(3) as usize];
    let _ = match random.below(9) {
        0 => fs::rename(at("a"), at(side)),
        1 => fs::rename(at(side), at("a")),
        2 => fs::rename(at("a/b"), at("a/other")).and_then(|()| fs::rename(at("a/other"), at("a/b"))),
        3 => fs::remove_dir_all(at("a")),
        4 => fs::remove_dir_all(at(side)).and_then(|()| symlink(at("a/b"), at(side))),
        5 => fs::rename(at("a"), at("away")).and_then(|()| symlink("away", at("a"))),
        6 => fs::remove_file(at("a")).and_then(|()| fs::rename(at("away"), at("a"))),
        7 => fs::remove_file(at("l")).and_then(|()| symlink(["a/b", "x/b", "a"][random.below(3) as usize], at("l"))),
        _ => {
            make(["a", "a", "x"][random.below(3) as usize]);
            let _ = symlink("a/b", at("l"));
            Ok(())
        }
    };
}
