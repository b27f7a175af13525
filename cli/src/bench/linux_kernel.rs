//! The Linux kernel to compare with: the one given, or Debian's cloud kernel, taken out of its package
//! without installing it and kept under `target/linux`.

use super::error::{BenchError, at};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Debian's package that depends on the newest cloud kernel.
const META_PACKAGE: &str = "linux-image-cloud-amd64";
/// Where a bzImage keeps the offset of its version text, less 0x200 (Linux, Documentation/arch/x86/boot.rst).
const VERSION_POINTER: usize = 0x20e;
const VERSION_BASE: usize = 0x200;

/// A bootable kernel image.
pub struct LinuxKernel {
    pub image: Vec<u8>,
    pub path: PathBuf,
    /// As `uname -r` prints it.
    pub version: String,
}

/// # Errors
/// `NoLinuxKernel` when none is given, kept, or to be had from the package system.
pub fn find(cache: &Path, given: Option<&Path>) -> Result<LinuxKernel, BenchError> {
    match given {
        Some(path) => load(path),
        None => load(&kept(cache).map_or_else(|| download(cache), Ok)?),
    }
}

fn load(path: &Path) -> Result<LinuxKernel, BenchError> {
    let unusable = |reason: String| BenchError::NoLinuxKernel { reason: format!("{}: {reason}", path.display()) };
    let image = fs::read(path).map_err(|error| unusable(error.to_string()))?;
    let version = version_of(&image).ok_or_else(|| unusable("not a Linux kernel image (bzImage)".into()))?;
    Ok(LinuxKernel { image, path: path.into(), version })
}

fn version_of(image: &[u8]) -> Option<String> {
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let pointer = image.get(VERSION_POINTER..VERSION_POINTER + 2)?;
    let start = VERSION_BASE + usize::from(u16::from_le_bytes([pointer[0], pointer[1]]));
    let text = image.get(start..)?.split(|&byte| byte == 0 || byte == b' ').next()?;
    String::from_utf8(text.to_vec()).ok().filter(|version| !version.is_empty())
}

/// The newest kernel an earlier bench kept, by name.
pub fn kept(cache: &Path) -> Option<PathBuf> {
    let names = fs::read_dir(cache).ok()?.flatten().map(|entry| entry.path());
    names.filter(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("vmlinuz-"))).max()
}

/// Downloads the package that `META_PACKAGE` depends on and takes the kernel out of it.
fn download(cache: &Path) -> Result<PathBuf, BenchError> {
    fs::create_dir_all(cache).map_err(at(cache))?;
    let package = package_name()?;
    eprintln!("getting {package} (about 30 MB, once)");
    said(Command::new("apt-get").args(["download", "-q", &package]).current_dir(cache))?;
    let archive = newest_deb(cache, &package)?;
    let version = package.trim_start_matches("linux-image-");
    let inside = format!("./boot/vmlinuz-{version}");
    let mut unpacked = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(&archive)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| none(format!("dpkg-deb: {error}")))?;
    let stream = unpacked.stdout.take().expect("stdout is piped");
    let taken = said(Command::new("tar").args(["-xO", &inside]).stdin(stream));
    unpacked.wait().map_err(at(&archive))?;
    let path = cache.join(format!("vmlinuz-{version}"));
    let fresh = cache.join("vmlinuz.new");
    fs::write(&fresh, taken?).map_err(at(&fresh))?;
    fs::rename(&fresh, &path).map_err(at(&path))?;
    fs::remove_file(&archive).map_err(at(&archive))?;
    Ok(path)
}

fn none(reason: String) -> BenchError {
    BenchError::NoLinuxKernel { reason }
}

fn package_name() -> Result<String, BenchError> {
    let text = String::from_utf8_lossy(&said(Command::new("apt-cache").args(["depends", META_PACKAGE]))?).into_owned();
    let package = text.lines().find_map(|line| line.trim().strip_prefix("Depends: linux-image-"));
    package
        .map(|rest| format!("linux-image-{rest}"))
        .ok_or_else(|| none(format!("the package lists do not have {META_PACKAGE} (apt-get update gets them)")))
}

fn newest_deb(cache: &Path, package: &str) -> Result<PathBuf, BenchError> {
    let entries = fs::read_dir(cache).map_err(at(cache))?.flatten().map(|entry| entry.path());
    let is_it = |path: &PathBuf| {
        path.extension().is_some_and(|e| e == "deb")
            && path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(package))
    };
    entries.filter(is_it).max().ok_or_else(|| none(format!("apt-get left no {package} behind")))
}

/// Runs a command and gives what it printed; its failure is "no Linux kernel", with its last line.
fn said(command: &mut Command) -> Result<Vec<u8>, BenchError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| none(format!("{name}: {error}")))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().lines().last().unwrap_or("failed").to_string();
    Err(none(format!("{name}: {message}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image_with_version(version: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 0x400];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[VERSION_POINTER..VERSION_POINTER + 2].copy_from_slice(&0x100u16.to_le_bytes());
        image[0x300..0x300 + version.len()].copy_from_slice(version);
        image
    }

    #[test]
    fn the_version_is_read_from_the_image() {
        let image = image_with_version(b"6.1.0-56-cloud-amd64 (someone) #1\0");
        assert_eq!(version_of(&image).as_deref(), Some("6.1.0-56-cloud-amd64"));
    }

    #[test]
    fn what_is_not_a_kernel_has_no_version() {
        assert_eq!(version_of(b"short"), None);
        assert_eq!(version_of(&[0; 0x400]), None);
        let mut beyond = image_with_version(b"");
        beyond[VERSION_POINTER..VERSION_POINTER + 2].copy_from_slice(&[0xff, 0xff]);
        assert_eq!(version_of(&beyond), None);
    }
}
