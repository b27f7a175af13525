//! The files of the project.

use std::fs;
use std::path::{Path, PathBuf};

/// The project's folder.
pub fn root() -> PathBuf {
    Path::new(env!("SYNTHESIS_ROOT")).components().collect()
}

/// All files below `folder` (relative to the project) whose names end in `ending`, as paths relative to the project,
/// sorted. Folders of builds and hidden folders are left out.
///
/// # Panics
/// When a folder cannot be read.
pub fn files(folder: &str, ending: &str) -> Vec<String> {
    let (root, mut found, mut folders) = (root(), Vec::new(), vec![PathBuf::from(folder)]);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(root.join(&folder)) else { continue };
        for entry in entries {
            let entry = entry.expect("a readable folder");
            let name = entry.file_name().into_string().expect("names are UTF-8");
            let path = folder.join(&name);
            if entry.file_type().expect("a file type").is_dir() {
                if name != "target" && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if name.ends_with(ending) {
                found.push(path.to_str().expect("names are UTF-8").trim_start_matches("./").to_string());
            }
        }
    }
    found.sort();
    found
}

/// The text of a file of the project.
///
/// # Panics
/// When it cannot be read.
pub fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
