//! The project's folder.

use std::path::{Path, PathBuf};

/// The checkout that the tool lies in; for one that was installed elsewhere, the checkout that it was built in.
pub fn project_root() -> PathBuf {
    let tool = std::env::current_exe().unwrap_or_default();
    around(&tool).unwrap_or(Path::new(env!("SYNTHESIS_ROOT"))).components().collect()
}

/// The checkout around `CHECKOUT/target/release/synth`. A copied one has a tool in which the old one's path is compiled.
fn around(tool: &Path) -> Option<&Path> {
    tool.ancestors().nth(3).filter(|top| top.join("bin/hosted/synthesis.gdb").is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copied_tool_belongs_to_the_copied_checkout() {
        let copy = tempfile::tempdir().unwrap();
        let tool = copy.path().join("target/release/synth");
        assert_eq!(around(&tool), None);
        std::fs::create_dir_all(copy.path().join("bin/hosted")).unwrap();
        std::fs::write(copy.path().join("bin/hosted/synthesis.gdb"), "").unwrap();
        assert_eq!(around(&tool), Some(copy.path()));
        assert!(project_root().join("Cargo.lock").is_file());
    }
}
