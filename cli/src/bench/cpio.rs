//! Writes the "newc" cpio archives that Linux unpacks as its first root file system
//! (format: Linux, Documentation/driver-api/early-userspace/buffer-format.rst).

const DIRECTORY: u32 = 0o040_755;
const EXECUTABLE: u32 = 0o100_755;
const SYMLINK: u32 = 0o120_777;
const CHARACTER_DEVICE: u32 = 0o020_600;
const ALIGNMENT_BYTES: usize = 4;

/// An archive under construction. Times and owners are 0, so equal contents give equal bytes.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// Adds a folder; `path` has no leading slash, and its parents come first.
    pub fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY, (0, 0), &[]);
    }

    /// Adds a file that everyone may read and execute.
    pub fn file(&mut self, path: &str, contents: &[u8]) {
        self.entry(path, EXECUTABLE, (0, 0), contents);
    }

    /// Adds a symbolic link to `target`.
    pub fn symlink(&mut self, path: &str, target: &[u8]) {
        self.entry(path, SYMLINK, (0, 0), target);
    }

    pub fn character_device(&mut self, path: &str, major: u32, minor: u32) {
        self.entry(path, CHARACTER_DEVICE, (major, minor), &[]);
    }

    /// Ends the archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), contents: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(contents.len()).expect("an archived file is smaller than 4 GB");
        let name_bytes = path.len() as u32 + 1;
        // inode, mode, uid, gid, links, mtime, size, device of the file, device it names, name, checksum
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, device.0, device.1, name_bytes, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(contents);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT_BYTES), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_contents_start_at_multiples_of_four() {
        let mut archive = Archive::default();
        archive.file("a", b"12345");
        archive.file("bc", b"6");
        let bytes = archive.finish();
        // 110 bytes of header and "a\0" make 112; the contents follow, padded from 5 to 8.
        assert_eq!(&bytes[112..117], b"12345");
        assert_eq!(&bytes[120..126], b"070701");
        assert_eq!(bytes.len() % 4, 0);
    }

    #[test]
    fn an_archive_ends_with_its_trailer() {
        let bytes = Archive::default().finish();
        assert_eq!(&bytes[110..121], b"TRAILER!!!\0");
    }
}
