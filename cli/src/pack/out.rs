//! `--out GUEST:HOST`: files that come back when the machine ends.
//!
//! Each comes into a folder of its own beside HOST, and gets its name when all of it is there.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

use super::shares::{Manner, Share};
use crate::failure::{Failure, TOOL};

/// What shall come back.
#[derive(Default)]
pub struct Outgoing(Vec<One>);

struct One {
    guest: PathBuf,
    host: PathBuf,
    /// Where it comes first; it goes when this does.
    folder: PathBuf,
}

impl Drop for One {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Outgoing {
    /// Makes room for what the options name.
    pub fn prepare(options: &[OsString]) -> Result<Outgoing, Failure> {
        let each = options.iter().enumerate().map(|(number, option)| One::prepare(number, option));
        each.collect::<Result<_, _>>().map(Outgoing)
    }

    /// The folders that the machine must have for it.
    pub fn shares(&self) -> impl Iterator<Item = Share> {
        let share = |one: &One| Share { host: one.folder.clone(), guest: one.guest.clone(), manner: Manner::Out };
        self.0.iter().map(share)
    }

    /// The machine has ended: what has come gets its name.
    pub fn finish(self) -> Result<(), Failure> {
        self.0.iter().try_for_each(One::finish)
    }
}

impl One {
    fn prepare(number: usize, option: &OsStr) -> Result<One, Failure> {
        let failed = |reason: &str, help: &str| {
            Failure::new(TOOL, format!("--out {}: {reason}", option.to_string_lossy()), help)
        };
        let colon = option.as_bytes().iter().position(|byte| *byte == b':');
        let colon = colon.ok_or_else(|| failed("no HOST", "write GUEST:HOST"))?;
        let part = |bytes| PathBuf::from(OsStr::from_bytes(bytes));
        let (guest, host) = (part(&option.as_bytes()[..colon]), part(&option.as_bytes()[colon + 1..]));
        let climbs = guest.components().any(|part| part == Component::ParentDir);
        if !guest.is_absolute() || climbs || guest == Path::new("/") {
            return Err(failed("GUEST is no absolute path", "write /where/in/the/guest:HOST"));
        }
        let Ok(host) = std::path::absolute(&host) else { return Err(failed("no HOST", "write GUEST:HOST")) };
        if fs::symlink_metadata(&host).is_ok_and(|about| about.is_dir()) {
            return Err(failed("the folder is there already", "name one that is not there yet"));
        }
        let parent = host.parent().filter(|parent| parent.is_dir());
        let parent = parent.ok_or_else(|| failed("there is no folder for it", "make it first"))?;
        let folder = parent.join(format!(".synth-out-{}-{number}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&folder).map_err(|error| failed(&error.to_string(), ""))?;
        Ok(One { guest: guest.components().collect(), host, folder })
    }

    fn finish(&self) -> Result<(), Failure> {
        let failed = |reason: &str| {
            let text = format!("--out {}:{}: {reason}", self.guest.display(), self.host.display());
            Failure::new(TOOL, text, "nothing has come back; HOST is as it was")
        };
        match fs::read_to_string(self.folder.join("end")) {
            Ok(reason) if !reason.is_empty() => Err(failed(&reason)),
            Ok(_) => fs::rename(self.folder.join("brought"), &self.host).map_err(|error| failed(&error.to_string())),
            Err(_) => Err(failed("the machine did not come to its end")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_come_back_is_refused_before_the_run() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("full")).unwrap();
        let host = |name: &str| folder.path().join(name).display().to_string();
        let bad = ["/x", "x:a", "/../x:a", "/:a", "/x:no/a", "/x:full"].map(|option| match option.split_once(':') {
            Some((guest, name)) => format!("{guest}:{}", host(name)),
            None => option.into(),
        });
        for bad in bad {
            assert!(Outgoing::prepare(&[OsString::from(&bad)]).is_err(), "{bad}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_came_gets_its_name_and_nothing_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let option = OsString::from(format!("/x:{}", folder.path().join("a").display()));
        let run = |write: &dyn Fn(&Path)| {
            let outgoing = Outgoing::prepare(std::slice::from_ref(&option)).unwrap();
            write(&outgoing.shares().next().unwrap().host);
            outgoing.finish()
        };
        assert!(run(&|_| ()).is_err());
        let error = run(&|place| fs::write(place.join("end"), "no such file").unwrap()).unwrap_err().error;
        assert!(error.contains("no such file"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        run(&|place| {
            fs::write(place.join("brought"), "text").unwrap();
            fs::write(place.join("end"), "").unwrap();
        })
        .unwrap();
        assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"text");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
