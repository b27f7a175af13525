//! C programs with our libraries.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// Built libraries, and a folder for programs, which goes when this is dropped.
pub struct Libraries {
    built: PathBuf,
    folder: PathBuf,
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Libraries {
    /// Builds those of `user/FOLDER`. `None`: there is no gcc on this machine.
    ///
    /// # Panics
    /// When the libraries cannot be built.
    pub fn of(folder: &str) -> Option<Libraries> {
        if Command::new("gcc").arg("--version").output().is_err() {
            eprintln!("skipped: no gcc");
            return None;
        }
        let root = PathBuf::from(env!("SYNTHESIS_ROOT"));
        succeed(&mut Command::new(root.join("user").join(folder).join("build.sh")));
        let built = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from).join("user");
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("synthesis-{folder}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        Some(Libraries { built, folder })
    }

    /// Where programs may leave files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A file that the build made.
    pub fn file(&self, name: &str) -> PathBuf {
        self.built.join(name)
    }

    /// Compiles a program with `gcc` or `g++`, warnings being errors.
    ///
    /// # Panics
    /// When it does not compile.
    pub fn compile(&self, compiler: &str, source: &str, name: &str, arguments: &[impl AsRef<OsStr>]) -> PathBuf {
        let extension = if compiler == "gcc" { "c" } else { "cc" };
        let (file, output) = (self.folder.join(format!("{name}.{extension}")), self.folder.join(name));
        std::fs::write(&file, source).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut command = Command::new(compiler);
        command.args(["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"]).arg(&self.built);
        succeed(command.arg("-o").arg(&output).arg(file).args(arguments));
        output
    }

    /// The three ways to have a library: all static, its archive, its shared object.
    pub fn ways(&self, library: &str) -> [(&'static str, Vec<String>); 3] {
        let built = self.built.display();
        let archive = format!("{built}/lib{library}.a");
        let shared = [format!("-L{built}"), format!("-l{library}"), format!("-Wl,-rpath,{built}")];
        [("static", vec!["-static".into(), archive.clone()]), ("archive", vec![archive]), ("shared", shared.into())]
    }
}

impl Drop for Libraries {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
