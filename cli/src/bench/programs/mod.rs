//! `synth bench programs`: whole programs of the host's, run unmodified in a Linux guest and on Synthesis, with routines and without.
//!
//! `bench/programs/launch.c` runs them all in one boot of each system and says how many guest instructions each took, from before its fork
//! to after its end. Both systems have the same files: those that `synth run --with` packs.

mod hosted;
mod rows;
mod timed;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use bootimage::Node;
use serde::Serialize;

use super::compile::{Linkage, compile};
use super::cpio::Archive;
use super::error::{BenchError, at};
use super::linux::Guest;
use super::report::aligned;
use super::{BenchArgs, project_root};
use crate::options::FileOptions;
use crate::pack::{LOADED_BYTES_MAX, Packed, Source, pack};
use rows::{PACKAGES, ROWS, Row};

const MEMORY: &str = "512M";
const TIMEOUT_SECONDS: &str = "600";
/// Default may cost so much of generic: what a change of the layout of the code moves.
const SHARE_OF_GENERIC_MAX: f64 = 1.005;

/// What one system took for a row.
#[derive(Clone, Serialize)]
struct Figure {
    status: i32,
    /// Guest instructions of the first run, and the median of three later ones.
    first: u64,
    later: u64,
    #[serde(skip)]
    hash: u64,
    /// All later runs, ascending.
    #[serde(skip)]
    ticks: Vec<u64>,
}

type Figures = BTreeMap<String, Figure>;

#[derive(Serialize)]
struct Line {
    program: &'static str,
    command: &'static str,
    linux: Option<Figure>,
    generic: Option<Figure>,
    synthesis: Option<Figure>,
    /// Linux over Synthesis, and Synthesis over generic; of the later runs.
    ratio: Option<f64>,
    of_generic: Option<f64>,
    /// Why there is no figure, or which promise is broken.
    remark: Option<String>,
    is_good: bool,
}

/// Measures and prints. With `--check` the exit status is 1 where Synthesis needs more than without routines, or than Linux; a figure that
/// is missing, or another output, always fails. A program that the host has not is left out and named.
///
/// # Errors
/// When the launcher cannot be built or a guest does not run.
pub fn bench(args: &BenchArgs) -> Result<ExitCode, BenchError> {
    if args.hosted {
        return hosted::bench(args);
    }
    let root = project_root();
    if root.starts_with("/tmp") {
        return Err(BenchError::Covered { root });
    }
    let folder = root.join("target/bench/programs");
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    for name in ["launch", "small"] {
        let source = root.join("bench/programs").join(name).with_extension("c");
        compile(&source, &folder.join(name), Linkage::Static)?;
    }
    let chosen = choose(&args.only)?;
    let able: Vec<&Row> = chosen.iter().copied().filter(|row| missing(row).is_none()).collect();
    let files = Files::new(&folder, &able)?;
    let linux = files.on_linux(&root, args)?;
    let synthesis = files.on_synthesis(false)?;
    let generic = files.on_synthesis(true)?;
    let lines: Vec<Line> = chosen.iter().map(|row| line(row, &linux, &generic, &synthesis)).collect();
    if args.json {
        println!("{}", serde_json::to_string_pretty(&lines).expect("lines are plain data"));
    } else {
        print!("{}", text(&lines, args.markdown));
    }
    let is_failed = |line: &Line| line.remark.is_some() && line.synthesis.is_some() || args.check && !line.is_good;
    Ok(if lines.iter().any(is_failed) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn choose(only: &[String]) -> Result<Vec<&'static Row>, BenchError> {
    let is_named = |(number, row): &(usize, &Row)| {
        let is = |name: &String| {
            *name == (number + 1).to_string() || name == row.name || row.command.split(' ').next() == Some(name)
        };
        only.is_empty() || only.iter().any(is)
    };
    let chosen: Vec<&Row> = ROWS.iter().enumerate().filter(is_named).map(|(_, row)| row).collect();
    if chosen.is_empty() {
        let known = ROWS.iter().enumerate().map(|(number, row)| format!("{} ({})", number + 1, row.name));
        let known = known.collect::<Vec<_>>().join(", ");
        return Err(BenchError::UnknownProgram { asked: only.join(", "), known });
    }
    Ok(chosen)
}

fn on_host(program: &str) -> Option<PathBuf> {
    ["/usr/bin", "/bin"].iter().map(|folder| Path::new(folder).join(program)).find(|path| path.exists())
}

/// The first program that the host has not.
fn missing(row: &Row) -> Option<&'static str> {
    row.needs.iter().copied().find(|program| on_host(program).is_none())
}

/// What both systems have beside their kernels.
struct Files {
    launch: PathBuf,
    with: Vec<String>,
}

impl Files {
    fn new(folder: &Path, rows: &[&Row]) -> Result<Files, BenchError> {
        let list = folder.join("rows");
        let lines: String =
            rows.iter().map(|row| format!("{}\t{}\n", row.name.replace(' ', "_"), row.command)).collect();
        fs::write(&list, lines).map_err(at(&list))?;
        let mut with = vec![format!("{}:/bench/rows", list.display())];
        with.push(format!("{}:/bench/small", folder.join("small").display()));
        with.push("/bin/sh".into());
        let mut programs: Vec<&str> = rows.iter().flat_map(|row| row.needs.iter().copied()).collect();
        programs.sort_unstable();
        programs.dedup();
        with.extend(programs.into_iter().filter_map(on_host).map(|path| path.display().to_string()));
        Ok(Files { launch: folder.join("launch"), with })
    }

    fn on_synthesis(&self, generic: bool) -> Result<Figures, BenchError> {
        eprintln!("Synthesis{}: booting", if generic { " --generic" } else { "" });
        let tool = std::env::current_exe().map_err(at("synth"))?;
        let mut command = Command::new(tool);
        command.args(["run", "--icount", "--mem", MEMORY, "--timeout", TIMEOUT_SECONDS]);
        command.args(generic.then_some("--generic"));
        command.args(self.with.iter().flat_map(|with| ["--with", with]));
        let output = command.arg(&self.launch).arg("/bench/rows").stdin(Stdio::null()).output().map_err(at("synth"))?;
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("no word").to_string();
            return Err(BenchError::NotMeasured { reason });
        }
        Ok(figures(&output.stdout))
    }

    fn on_linux(&self, root: &Path, args: &BenchArgs) -> Result<Figures, BenchError> {
        let guest = Guest::prepare(root, args.linux.as_deref())?;
        let options = FileOptions { with: self.with.iter().map(Into::into).collect(), ..FileOptions::default() };
        let packed = pack(self.launch.as_os_str(), &options, None, (false, LOADED_BYTES_MAX))
            .map_err(|failure| BenchError::NotMeasured { reason: failure.to_string() })?;
        let mut archive = guest.archive()?;
        add_all(&mut archive, &packed)?;
        let program = String::from_utf8_lossy(&packed.program).into_owned();
        archive.file("runs", format!("{program} /bench/rows\n").as_bytes());
        let outcomes = guest.run_archive(archive.finish(), 1, args.fresh)?;
        Ok(figures(outcomes[0].stdout()))
    }
}

fn add_all(archive: &mut Archive, packed: &Packed) -> Result<(), BenchError> {
    for (path, _, node) in packed.tree.plan().iter() {
        let path = String::from_utf8_lossy(path).trim_start_matches('/').to_string();
        match node {
            _ if path.is_empty() => {}
            Node::Directory => archive.directory(&path),
            Node::Symlink { target } => archive.symlink(&path, target),
            Node::File { source: Source::Host(host), .. } => archive.file(&path, &fs::read(host).map_err(at(&**host))?),
            Node::File { source: Source::Bytes(bytes), .. } => archive.file(&path, bytes),
            // Devices the guest has of its own; the host's files are packed by their first name.
            _ => {}
        }
    }
    Ok(())
}

/// Reads the lines that `launch.c` describes.
fn figures(said: &[u8]) -> Figures {
    let said = String::from_utf8_lossy(said);
    let parse = |line: &str| {
        let mut words = line.trim_end().strip_prefix("row ")?.split(' ');
        let name = words.next()?.to_string();
        let status = words.next()?.parse().ok()?;
        let (first, later) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let hash = u64::from_str_radix(words.next()?, 16).ok()?;
        let ticks = words.map_while(|word| word.parse().ok()).collect();
        Some((name, Figure { status, first, later, hash, ticks }))
    };
    said.lines().filter_map(parse).collect()
}

fn line(row: &'static Row, linux: &Figures, generic: &Figures, synthesis: &Figures) -> Line {
    let of = |figures: &Figures| figures.get(&row.name.replace(' ', "_")).cloned();
    let (linux, generic, synthesis) = (of(linux), of(generic), of(synthesis));
    let share = |a: &Option<Figure>, b: &Option<Figure>| Some(a.as_ref()?.later as f64 / b.as_ref()?.later as f64);
    let (ratio, of_generic) = (share(&linux, &synthesis), share(&synthesis, &generic));
    let mut line = Line {
        program: row.name,
        command: row.command,
        linux,
        generic,
        synthesis,
        ratio,
        of_generic,
        remark: None,
        is_good: true,
    };
    line.remark = remark(row, &line);
    line.is_good = line.remark.is_none()
        && ratio.is_none_or(|ratio| ratio > 1.0)
        && of_generic.is_none_or(|share| share <= SHARE_OF_GENERIC_MAX)
        || missing(row).is_some();
    line
}

/// What is wrong with a row, or why it was not measured.
fn remark(row: &Row, line: &Line) -> Option<String> {
    if let Some(program) = missing(row) {
        let package = PACKAGES.iter().find(|(name, _)| *name == program).map_or(program, |(_, package)| package);
        return Some(format!("{program} is not on this host: apt-get install {package}"));
    }
    let (Some(linux), Some(generic), Some(synthesis)) = (&line.linux, &line.generic, &line.synthesis) else {
        return Some("a system did not run it".into());
    };
    if linux.status != synthesis.status || generic.status != synthesis.status {
        return Some(format!("status {} on Linux, {} here", linux.status, synthesis.status));
    }
    let same = linux.hash == synthesis.hash && generic.hash == synthesis.hash;
    (row.is_compared && !same).then(|| "another output".into())
}

fn text(lines: &[Line], markdown: bool) -> String {
    let header = ["#", "program", "Linux", "generic", "Synthesis", "ratio", "of generic", "good"];
    let mut table: Vec<Vec<String>> = vec![header.map(String::from).to_vec()];
    let thousands =
        |figure: &Option<Figure>| figure.as_ref().map_or("n/a".into(), |figure| format!("{}", figure.later / 1000));
    let share = |share: Option<f64>, digits: usize| share.map_or("-".into(), |share| format!("{share:.digits$}"));
    for (number, line) in lines.iter().enumerate() {
        let mut cells = vec![(number + 1).to_string(), line.program.to_string()];
        cells.extend([&line.linux, &line.generic, &line.synthesis].map(thousands));
        cells.extend([share(line.ratio, 2), share(line.of_generic, 3)]);
        cells.push(
            if line.synthesis.is_none() {
                "-"
            } else if line.is_good {
                "yes"
            } else {
                "no"
            }
            .into(),
        );
        table.push(cells);
    }
    let remarks: String =
        lines.iter().filter_map(|line| Some(format!("{}: {}\n", line.program, line.remark.as_ref()?))).collect();
    let facts =
        "thousand guest instructions from fork to end, median of three runs after a first; ratio = Linux / Synthesis\n";
    let body = if markdown { super::report::markdown(&table) } else { aligned(&table) };
    format!("{body}\n{facts}{remarks}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_launcher_prints_is_read() {
        let said = b"something\nrow dd,_4_KB 0 200 100 cbf29ce484222325 90 100 110\r\nrow broken 0\n";
        let figures = figures(said);
        let figure = &figures["dd,_4_KB"];
        assert_eq!((figures.len(), figure.first, figure.later, figure.hash), (1, 200, 100, 0xcbf2_9ce4_8422_2325));
        assert_eq!(figure.ticks, [90, 100, 110]);
    }

    #[test]
    fn a_row_must_be_below_linux_and_not_above_generic() {
        let figures = |later: u64| {
            Figures::from([(
                "true,_20_times".into(),
                Figure { status: 0, first: 1, later, hash: 1, ticks: Vec::new() },
            )])
        };
        let row = ROWS.iter().find(|row| row.name == "true, 20 times").unwrap();
        let good =
            |linux, generic, synthesis| line(row, &figures(linux), &figures(generic), &figures(synthesis)).is_good;
        assert!(good(200, 101, 100) && good(2000, 1000, 1004));
        assert!(!good(90, 101, 100) && !good(2000, 1000, 1006));
    }

    #[test]
    fn rows_have_names_of_their_own() {
        let mut names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ROWS.len());
        assert!(ROWS.iter().all(|row| !row.name.contains(['_', '\t']) && !row.command.contains(['\t', '\n'])));
    }

    #[test]
    fn only_names_rows_by_number_name_or_program() {
        let names = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(ToString::to_string).collect();
            choose(&only).map(|rows| rows.iter().map(|row| row.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["2", "du"]).unwrap(), ["dd, 4 KB", "du"]);
        assert_eq!(names(&["find"]).unwrap().len(), 2);
        assert!(names(&["nothing"]).is_err());
    }
}
