//! The virtual machine's sound: whether it has a device for it, and where what it plays is heard.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use super::qemu::{PROGRAM, doubled_commas};
use crate::failure::{Failure, TOOL};

/// What was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wish {
    /// No device at all.
    None,
    /// The host's own sound.
    Host,
    Wav(PathBuf),
}

impl FromStr for Wish {
    type Err = String;

    fn from_str(text: &str) -> Result<Wish, String> {
        match text.split_once(':') {
            None if text == "none" => Ok(Wish::None),
            None if text == "host" => Ok(Wish::Host),
            Some(("wav", file)) if !file.is_empty() => Ok(Wish::Wav(file.into())),
            _ => Err("expected wav:FILE, host or none".into()),
        }
    }
}

/// Frames a second in a file, where nothing is said: a CD's.
pub const WAV_HERTZ: u32 = 44_100;

/// Where the machine's device is heard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sound {
    None,
    /// A driver of QEMU's.
    Driver(&'static str),
    /// A file, and its frames a second.
    Wav(PathBuf, u32),
}

impl Sound {
    /// What was asked for, if it can be had here: a file is begun, a driver is looked for.
    pub fn prepare(wish: &Wish, hertz: Option<u32>) -> Result<Sound, Failure> {
        match wish {
            Wish::None => Ok(Sound::None),
            Wish::Host => host_driver(&drivers(), &Host::of_process()).map(Sound::Driver),
            Wish::Wav(file) => {
                File::create(file).map_err(|error| {
                    let help = "name a file that can be written: --sound wav:FILE";
                    Failure::new(TOOL, format!("cannot write {}: {error}", file.display()), help)
                })?;
                Ok(Sound::Wav(file.clone(), hertz.unwrap_or(WAV_HERTZ)))
            }
        }
    }

    /// QEMU's machine that has a place for the device. The usual one has no PCI, and needs ACPI to say where that is.
    pub fn machine(&self) -> &'static str {
        match self {
            Sound::None => "microvm,acpi=off,pic=off,isa-serial=off,x-option-roms=off,rtc=on",
            _ => "microvm,acpi=on,pcie=on,pic=off,isa-serial=off,x-option-roms=off,rtc=on",
        }
    }

    /// QEMU's words for the device.
    pub fn arguments(&self) -> Vec<OsString> {
        let driver: OsString = match self {
            Sound::None => return Vec::new(),
            Sound::Driver(name) => format!("{name},id=sound").into(),
            Sound::Wav(file, hertz) => {
                let mut driver: OsString = format!("wav,id=sound,out.frequency={hertz},path=").into();
                driver.push(std::ffi::OsStr::from_bytes(&doubled_commas(file.as_os_str().as_bytes())));
                driver
            }
        };
        let mut line = vec![OsString::from("-audiodev"), driver];
        // With a timer of its own the codec throws samples away when whoever hears them is late.
        line.extend(["-device", "intel-hda", "-device", "hda-output,audiodev=sound,use-timer=off"].map(OsString::from));
        line
    }

    /// A machine that was ended has not written how long its file is.
    pub fn finish(&self) -> Result<(), Failure> {
        let Sound::Wav(file, _) = self else { return Ok(()) };
        let failed = |error| Failure::new(TOOL, format!("cannot finish {}: {error}", file.display()), "");
        File::options().write(true).open(file).and_then(|file| say_lengths(&file)).map_err(failed)
    }
}

/// Writes how many bytes follow into the header of a WAV file, where QEMU has written one: behind `RIFF`, and behind `data`.
fn say_lengths(mut file: &File) -> std::io::Result<()> {
    const HEADER_BYTES: u64 = 44;
    let bytes = file.metadata()?.len();
    if bytes < HEADER_BYTES {
        return Ok(());
    }
    for (place, before) in [(4, 8), (40, HEADER_BYTES)] {
        file.seek(SeekFrom::Start(place))?;
        file.write_all(&((bytes - before) as u32).to_le_bytes())?;
    }
    Ok(())
}

/// The drivers that this QEMU has.
fn drivers() -> Vec<String> {
    let output = Command::new(PROGRAM).args(["-audiodev", "help"]).output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    said.lines().map(str::trim).filter(|line| !line.contains(' ')).map(String::from).collect()
}

/// Where a host can be heard.
struct Host {
    /// The folder of this session's sockets.
    session: Option<PathBuf>,
    root: PathBuf,
}

impl Host {
    fn of_process() -> Host {
        Host { session: std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from), root: "/".into() }
    }

    /// Whether what a driver needs is there.
    fn serves(&self, driver: &str) -> bool {
        let in_session = |name: &str| self.session.as_ref().is_some_and(|folder| folder.join(name).exists());
        let has_player = |folder: &Path| {
            let names = folder.read_dir().into_iter().flatten().flatten();
            names
                .map(|entry| entry.file_name())
                .any(|name| name.as_bytes().starts_with(b"pcm") && name.as_bytes().ends_with(b"p"))
        };
        match driver {
            "pipewire" => in_session("pipewire-0"),
            "pa" => in_session("pulse/native") || std::env::var_os("PULSE_SERVER").is_some(),
            "alsa" => has_player(&self.root.join("dev/snd")),
            "oss" => self.root.join("dev/dsp").exists(),
            _ => false,
        }
    }
}

/// The best of QEMU's drivers that this host serves.
fn host_driver(drivers: &[String], host: &Host) -> Result<&'static str, Failure> {
    const BEST_FIRST: [&str; 4] = ["pipewire", "pa", "alsa", "oss"];
    let is_there = |name: &&&str| drivers.iter().any(|driver| driver == **name) && host.serves(name);
    BEST_FIRST.iter().find(is_there).copied().ok_or_else(|| {
        let has = if drivers.is_empty() { "none".into() } else { drivers.join(" ") };
        let error =
            format!("--sound host: nothing on this host plays what {PROGRAM} could give it (its drivers: {has})");
        Failure::new(TOOL, error, "write it into a file: --sound wav:FILE")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_is_one_of_three() {
        assert_eq!(("none".parse(), "host".parse()), (Ok(Wish::None), Ok(Wish::Host)));
        assert_eq!("wav:a:b".parse(), Ok(Wish::Wav("a:b".into())));
        for bad in ["", "wav", "wav:", "alsa", "host:x"] {
            assert!(bad.parse::<Wish>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_is_told_before_the_run() {
        let failure = Sound::prepare(&Wish::Wav("/no/such/folder/x.wav".into()), None).unwrap_err();
        assert_eq!(failure.status, TOOL);
        assert!(failure.error.contains("/no/such/folder/x.wav"), "{failure}");
    }

    #[test]
    fn the_monitor_is_told_where_the_device_is_heard() {
        let words = |sound: &Sound| {
            sound.arguments().iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert!(words(&Sound::None).is_empty());
        let file = words(&Sound::Wav("/a,b".into(), 48_000)).join(" ");
        assert!(file.starts_with("-audiodev wav,id=sound,out.frequency=48000,path=/a,,b -device intel-hda "), "{file}");
        assert!(Sound::Driver("pa").machine().contains("pcie=on") && Sound::None.machine().contains("acpi=off"));
    }

    #[test]
    fn the_hosts_sound_is_what_it_has_and_the_monitor_can() {
        let folder = std::env::temp_dir().join(format!("synth-sound-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("dev/snd")).unwrap();
        let host = Host { session: None, root: folder.clone() };
        let drivers = ["none", "alsa", "wav"].map(String::from);
        let failure = host_driver(&drivers, &host).unwrap_err();
        assert!(failure.error.contains("none alsa wav") && failure.help.contains("wav:FILE"), "{failure}");
        std::fs::write(folder.join("dev/snd/pcmC0D0p"), "").unwrap();
        assert_eq!(host_driver(&drivers, &host).unwrap(), "alsa");
        assert!(host_driver(&["pa".to_string()], &host).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_was_cut_short_says_how_long_it_is() {
        let path = std::env::temp_dir().join(format!("synth-sound-{}.wav", std::process::id()));
        std::fs::write(&path, [0; 44 + 8]).unwrap();
        Sound::Wav(path.clone(), WAV_HERTZ).finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!((bytes[4], bytes[40], bytes.len()), (44, 8, 52));
        std::fs::remove_file(path).unwrap();
    }
}
