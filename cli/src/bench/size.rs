//! `synth bench size`: what the kernel needs of memory, the thesis's table 3.6 (S-94).

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use serde::Serialize;

use super::error::{BenchError, at};
use super::report::{self, aligned};
use super::{BenchArgs, compile, project_root};

const TIMEOUT_SECONDS: &str = "120";

/// A line of the table. Bytes are those that the stage adds.
#[derive(Debug, Serialize)]
struct Row {
    title: &'static str,
    code_bytes: i64,
    data_bytes: i64,
    paper_kilobytes: &'static str,
}

/// The stages that `bench/tables/size.c` prints, what they show, and the paper's figure.
const STAGES: [(&str, &str, &str); 5] = [
    ("running", "first program running, all frames in use", "-"),
    ("thread", "one thread", "0.4 + 8"),
    ("file", "a file of 400 KB", "6 + 400"),
    ("threads", "100 threads", "-"),
    ("open", "300 open files", "-"),
];

/// Measures and prints.
///
/// # Errors
/// When the program cannot be built or does not run.
pub fn bench(args: &BenchArgs) -> Result<ExitCode, BenchError> {
    let root = project_root();
    let rows = measure(&root)?;
    let json = || serde_json::json!({ "table": "3.6", "unit": "bytes", "rows": rows, "commit": report::commit(&root) });
    if args.json {
        println!("{:#}", json());
        return Ok(ExitCode::SUCCESS);
    }
    println!("Table 3.6: kernel memory, kilobytes as code + data (paper: 68030)\n");
    print!("{}", aligned(&cells(&rows)));
    println!(
        "\n- image: program headers of the kernel; all else: the kernel's gauges before and after, on the pc machine"
    );
    println!("- first program running: without the program's own pages; commit: {}", report::commit(&root));
    Ok(ExitCode::SUCCESS)
}

fn cells(rows: &[Row]) -> Vec<Vec<String>> {
    let kilobytes = |bytes: i64| format!("{:.1}", bytes as f64 / 1024.0);
    let header = ["", "code", "data", "paper"].map(String::from).to_vec();
    let line = |row: &Row| {
        vec![row.title.into(), kilobytes(row.code_bytes), kilobytes(row.data_bytes), row.paper_kilobytes.into()]
    };
    core::iter::once(header).chain(rows.iter().map(line)).collect()
}

fn measure(root: &Path) -> Result<Vec<Row>, BenchError> {
    let folder = root.join("target/bench/tables");
    std::fs::create_dir_all(&folder).map_err(at(&folder))?;
    let program = folder.join("size");
    compile::compile(&root.join("bench/tables/size.c"), &program, compile::Linkage::Static)?;
    let tool = std::env::current_exe().map_err(at("/proc/self/exe"))?;
    let mut command = Command::new(&tool);
    command.args(["run", "--icount", "--timeout", TIMEOUT_SECONDS]).arg(&program).stdin(Stdio::null());
    let output = command.output().map_err(at(&tool))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows = rows(&text).ok_or_else(|| BenchError::NotMeasured {
        reason: format!("{}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr)),
    })?;
    Ok([image()?].into_iter().chain(rows).collect())
}

/// What the kernel's image takes of memory.
fn image() -> Result<Row, BenchError> {
    let path =
        crate::machine::kernel::find(None).map_err(|failure| BenchError::NotMeasured { reason: failure.error })?;
    let bytes = std::fs::read(&path).map_err(at(&path))?;
    let (code, data) = segments(&bytes).ok_or_else(|| BenchError::NotMeasured { reason: "no kernel image".into() })?;
    Ok(Row { title: "boot image", code_bytes: code, data_bytes: data, paper_kilobytes: "140" })
}

/// Bytes in memory of an ELF file's executable segments, and of all others (Elf64_Phdr: type 0, flags 4, size in memory 40).
fn segments(file: &[u8]) -> Option<(i64, i64)> {
    let field = |at: usize, bytes: usize| -> Option<u64> {
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(file.get(at..at.checked_add(bytes)?)?);
        Some(u64::from_le_bytes(word))
    };
    let (start, size, count) = (field(32, 8)? as usize, field(54, 2)? as usize, field(56, 2)? as usize);
    let (mut code, mut data) = (0, 0);
    for at in (0..count).map(|index| start + index * size) {
        if field(at, 4)? == 1 {
            let sum = if field(at + 4, 4)? & 1 != 0 { &mut code } else { &mut data };
            *sum += field(at + 40, 8)? as i64;
        }
    }
    (code > 0).then_some((code, data))
}

fn rows(text: &str) -> Option<Vec<Row>> {
    let stage = |name: &str| -> Option<(i64, i64)> {
        let mut words = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?.split(' ');
        Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
    };
    let (_, program) = stage("program")?;
    let row = |(name, title, paper_kilobytes): (&str, &'static str, &'static str)| {
        let (code_bytes, data_bytes) = stage(name)?;
        let own = if name == "running" { program } else { 0 };
        Some(Row { title, code_bytes, data_bytes: data_bytes - own, paper_kilobytes })
    };
    let mut rows = STAGES.into_iter().map(row).collect::<Option<Vec<Row>>>()?;
    let sum = |field: fn(&Row) -> i64| rows[3..].iter().map(field).sum();
    let (code_bytes, data_bytes) = (sum(|row| row.code_bytes), sum(|row| row.data_bytes));
    rows.push(Row { title: "100 threads, 300 open files", code_bytes, data_bytes, paper_kilobytes: "80 + 1400" });
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_become_rows_and_the_last_is_a_sum() {
        let text = "program 0 100\nrunning 5 300\nthread 1 2\nfile 3 4\nthreads 10 20\nopen 30 40\n";
        let rows = rows(text).unwrap();
        let bytes: Vec<_> = rows.iter().map(|row| (row.code_bytes, row.data_bytes)).collect();
        assert_eq!(bytes, [(5, 200), (1, 2), (3, 4), (10, 20), (30, 40), (40, 60)]);
        assert!(super::rows("thread 1 2\n").is_none());
    }

    #[test]
    fn an_image_is_its_segments_in_memory() {
        let mut file = vec![0; 64 + 2 * 56];
        (file[32], file[54], file[56]) = (64, 56, 2);
        for (at, flags, bytes) in [(64, 5, 100), (120, 6, 50)] {
            (file[at], file[at + 4], file[at + 40]) = (1, flags, bytes);
        }
        assert_eq!(segments(&file), Some((100, 50)));
        assert_eq!(segments(&file[..80]), None);
    }
}
