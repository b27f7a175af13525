//! What programs play through /dev/dsp is what the machine's sound device is given: the monitor records it into a file, and the file is
//! compared, sample by sample. Counted runs are in virtual time, so that a busy host changes nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use means::Random;

use super::scene::expect;
use crate::options::Options;
use crate::process::{self, Outcome};
use crate::programs::{self, Linking};
use crate::report::Tally;
use crate::root::find_program;
use crate::side::runner_command;

/// Left and right.
pub(super) type Frame = [i16; 2];

/// Another file with the same sound, and what is heard of it.
type Encode = fn(&Stage<'_>, &Path) -> Result<(PathBuf, Vec<Frame>), String>;

const RATE: usize = 44_100;

/// A case of `tests/programs/dsp.c`: what it prints, how it is run, and what is heard.
struct Case {
    name: &'static str,
    program: &'static str,
    words: &'static [&'static str],
    says: &'static [&'static str],
    heard: Heard,
}

/// How many frames of the pattern are heard, and whether there may be silence among them.
enum Heard {
    Nothing,
    Gapless(usize),
    /// With so many gaps.
    Gaps(usize, usize),
    /// With any.
    InOrder(usize),
    /// The samples of `formats`.
    Formats,
}

const COUNTED: &[&str] = &["--icount"];
const SECOND: &[&str] =
    &["at most 6", " bytes to come, 0 falls\n", "SYNC, 0) -> ok\n176400 bytes in the end, 45328 at the place, 0"];

const fn case(name: &'static str, says: &'static [&'static str], heard: Heard) -> Case {
    Case { name, program: name, words: COUNTED, says, heard }
}

/// The case `second`, otherwise run.
const fn second(name: &'static str, words: &'static [&'static str], heard: Heard) -> Case {
    Case { name, program: "second", words, says: SECOND, heard }
}

const CASES: &[Case] = &[
    case("requests", REQUESTS, Heard::Nothing),
    case("second", SECOND, Heard::Gapless(RATE)),
    Case {
        name: "second_at_48000",
        program: "second_at_48000",
        words: &["--icount", "--sound-rate", "48000"],
        says: SECOND,
        heard: Heard::Gapless(RATE),
    },
    second("without_synthesis", &["--icount", "--generic"], Heard::Gapless(RATE)),
    second("without_interrupts", &["--icount", "--kernel-arguments", "poll"], Heard::Gapless(RATE)),
    second("at_the_hosts_own_speed", &[], Heard::InOrder(RATE)),
    case("left_open", &[], Heard::Gapless(RATE)),
    case("left_open_by_a_child", &["child: exit 0\n"], Heard::Gaps(RATE + 100, 1)),
    case("late", &["close(fd) -> ok\n4 underruns\n"], Heard::Gaps(4 * 3072, 3)),
    case("late_in_a_small_ring", &["close(fd) -> ok\n", " underruns\n"], Heard::InOrder(4 * 3072)),
    case("two", TWO, Heard::Gaps(4000, 1)),
    case("unblocking", UNBLOCKING, Heard::Gapless(RATE)),
    case("interrupted", &["a part, 1 alarm\n", "+ count = 0 \nclose(fd) -> ok\n"], Heard::Gapless(2 * RATE)),
    case("killed", &["blocks of the heap: as before\nclose(fd) -> ok\n"], Heard::Gapless(RATE / 4)),
    case("resets", RESETS, Heard::Gaps(10_100, 1)),
    Case {
        name: "formats",
        program: "formats",
        words: &["--icount", "--sound-rate", "16000"],
        says: &["8 16000\n", "\n32\n"],
        heard: Heard::Formats,
    },
    case(
        "converter",
        &["open(\"/dev/dsp\", O_WRONLY) -> EBUSY\nclose(fd) -> ok\nopen(\"/dev/da\", O_WRONLY) -> EBUSY\n"],
        Heard::Gapless(RATE),
    ),
];

const REQUESTS: &[&str] = &[
    "O_RDONLY) -> EINVAL\n",
    "READ_RATE 0 -> 0x1f40\nSOUND_PCM_READ_BITS 0 -> 0x8\nSOUND_PCM_READ_CHANNELS 0 -> 0x1\nSNDCTL_DSP_GETFMTS 0 -> 0x79\n",
    "GETCAPS 0 -> 0x1201\n",
    "SETFMT 0 -> 0x8\nSNDCTL_DSP_SETFMT 0x20 -> 0x20\nSNDCTL_DSP_SETFMT 0x200 -> 0x10\n",
    "STEREO 0x1 -> 0x1\nSNDCTL_DSP_CHANNELS 0x6 -> 0x2\nSNDCTL_DSP_CHANNELS 0 -> 0x1\n",
    "rate 0 -> 4000\nrate 4000 -> 4000\nrate 8000 -> 8000\nrate 11025 -> 11025\nrate 22050 -> 22050\nrate 44056 -> 44100\n",
    "rate 96000 -> 96000\nrate 1073741824 -> 96000\n",
    "GETBLKSIZE 0 -> 0x1000\nSNDCTL_DSP_SETFRAGMENT 0x4000a -> 0x4000a\nSNDCTL_DSP_GETBLKSIZE 0 -> 0x400\n",
    "224 fragments of 128\n",
    "2 fragments of 65536\nSNDCTL_DSP_SETFRAGMENT 0xa -> 0xffffffea\n",
    "UNKNOWN 0 -> 0xffffffea\nSNDCTL_DSP_GETISPACE 0 -> 0xffffffea\n",
    "SPEED, NULL) -> EFAULT\nioctl(fd, SNDCTL_DSP_GETOSPACE, 8) -> EFAULT\nioctl(fd, TIOCGWINSZ, &fd) -> EINVAL\n",
    "read(fd, &byte, 1) -> ENXIO\nlseek(fd, 0, SEEK_SET) -> ESPIPE\n",
    "-1 : 0 -> ENODEV\nwrite(fd, &byte, 0) = 0 \n",
    "-1 : 0 -> EACCES\nSOUND_PCM_READ_RATE 0 -> 0x1f40\nSNDCTL_DSP_SETFMT 0 -> 0x1\n",
];

const TWO: &[&str] = &[
    "O_WRONLY) -> EBUSY\nopen(\"/dev/audio\", O_WRONLY | O_NONBLOCK) -> EBUSY\n",
    "open(\"/dev/dsp\", O_WRONLY) -> EBUSY\nclose(copy) -> ok\n",
];

const UNBLOCKING: &[&str] = &[
    "16 of 16 fragments of 4096, 65536 bytes\nready 1\nwrite(fd, frames, sizeof frames) = 65536 \n",
    "write(fd, frames, 4) -> EAGAIN\nready 0, 0 bytes\nioctl(fd, SNDCTL_DSP_SYNC, 0) -> ok\n",
    "flag 1\n",
];

const RESETS: &[&str] = &[
    "RESET, 0) -> ok\n0 to come, 65536 bytes of room\nSNDCTL_DSP_GETTRIGGER 0 -> 0x2\nSNDCTL_DSP_SETTRIGGER 0 -> 0\n",
    "held back: 40000 to come\nSNDCTL_DSP_SETFRAGMENT 0x4000a -> 0xffffffea\n",
    "40000 bytes played\n",
    "less than a fragment: 400 to come\nioctl(fd, SNDCTL_DSP_POST, 0) -> ok\nposted: 0 to come\nclose(fd) -> ok\n",
];

/// # Errors
/// When the program cannot be built.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    let program = programs::build(options, "dsp", Linking::Static)?.display().to_string();
    if options.is_hosted() {
        tally.record("audio/no_device_is_told", no_device(options, &program));
        return Ok(());
    }
    let stage = Stage::set(options)?;
    for case in CASES {
        let name = format!("audio/{}", case.name);
        if options.selects(&name) {
            tally.record(&name, stage.plays(case, &program));
        }
    }
    for player in PLAYERS {
        let name = format!("audio/{}", player.name);
        match player.needs.iter().find(|need| find_program(need).is_none() && !Path::new(need).exists()) {
            _ if !options.selects(&name) => {}
            Some(need) => tally.skip(&name, &format!("{need} is not on this host")),
            None => tally.record(&name, stage.plays_file(player)),
        }
    }
    let name = "audio/what_cannot_be_had_is_refused";
    if options.selects(name) {
        tally.record(name, stage.refusals(&program));
    }
    let _ = fs::remove_dir_all(&stage.folder);
    Ok(())
}

/// Without a device there is nothing to open, and the tool says that the hosted machine has none.
fn no_device(options: &Options, program: &str) -> Result<(), String> {
    let mut command = runner_command(&options.runner);
    command.args([program, "second"]);
    let outcome = process::run(command, Vec::new(), options.case_timeout)?;
    expect(&said(&outcome), &["open(\"/dev/dsp\", O_WRONLY | flags): ENODEV"])?;
    let mut command = runner_command(&options.runner);
    command.args(["--sound", "wav:/dev/null", program, "second"]);
    let outcome = process::run(command, Vec::new(), options.case_timeout)?;
    expect(&said(&outcome), &["this machine has no sound device", "help: leave --hosted out"])
}

fn said(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&[outcome.stdout.as_slice(), &outcome.stderr].concat()).into_owned()
}

struct Stage<'a> {
    options: &'a Options,
    folder: PathBuf,
}

impl Stage<'_> {
    fn set(options: &Options) -> Result<Stage<'_>, String> {
        let folder = std::env::temp_dir().join(format!("audio-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        Ok(Stage { options, folder })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Runs the tool with `words`; what the machine has played, and what was said.
    fn record(&self, words: &[&str]) -> Result<(Vec<Frame>, Outcome), String> {
        let file = self.at("recorded.wav");
        let mut command = runner_command(&self.options.runner);
        command.arg("--sound").arg(format!("wav:{}", file.display())).args(words);
        let outcome = process::run(command, Vec::new(), self.options.case_timeout)?;
        Ok((frames(&fs::read(&file).map_err(|error| error.to_string())?)?, outcome))
    }

    fn plays(&self, case: &Case, program: &str) -> Result<(), String> {
        let words = [case.words, &["--timeout", "60", program, case.program]].concat();
        let (heard, outcome) = self.record(&words)?;
        let told = said(&outcome);
        if outcome.status != 0 {
            return Err(format!("status {}: {told}", outcome.status));
        }
        expect(&told, case.says)?;
        expect(&told, &["end\n"])?;
        match case.heard {
            Heard::Nothing => same(&[], &sounding(&heard)),
            Heard::Gapless(_) if case.program == "second_at_48000" => same(&pattern(RATE), trimmed(&heard)),
            Heard::Gapless(count) => same(&pattern(count), trimmed(&heard)),
            Heard::InOrder(count) => same(&pattern(count), &sounding(&heard)),
            Heard::Gaps(count, gaps) => {
                same(&pattern(count), &sounding(&heard))?;
                let found = trimmed(&heard).windows(2).filter(|pair| pair[0] != SILENCE && pair[1] == SILENCE).count();
                if found == gaps { Ok(()) } else { Err(format!("{found} gaps instead of {gaps}")) }
            }
            Heard::Formats => same(&sounding(&formats()), &sounding(&heard)),
        }
    }

    /// Somebody else's program plays a file, of noise.
    fn plays_file(&self, player: &Player) -> Result<(), String> {
        let mut noise = Random::new(player.rate as u64);
        let samples: Vec<Frame> =
            (0..player.frames).map(|_| [noise.bits() as i16 | 1, (noise.bits() >> 16) as i16 | 1]).collect();
        let file = self.at("noise.wav");
        fs::write(&file, wav(&samples, player.rate)).map_err(|error| error.to_string())?;
        let (file, expected) = match player.encode {
            None => (file, samples),
            Some(encode) => encode(self, &file)?,
        };
        let rate = player.rate.to_string();
        let file = file.display().to_string();
        let mut words = vec!["--icount", "--timeout", "60", "--sound-rate", &rate, "--with", &file];
        words.extend(player.with.iter().flat_map(|with| ["--with", with]));
        let configuration = self.at("asound.conf");
        fs::write(&configuration, "pcm.oss { type oss device /dev/dsp }\n").map_err(|error| error.to_string())?;
        let configuration = format!("{}:/etc/asound.conf", configuration.display());
        words.extend(["--with", &configuration]);
        words.extend(player.words.iter().map(|word| if *word == FILE { file.as_str() } else { word }));
        let (heard, outcome) = self.record(&words)?;
        if outcome.status != 0 {
            return Err(format!("status {}: {}", outcome.status, said(&outcome)));
        }
        same(&expected, trimmed(&heard)).map_err(|error| format!("{error}\n{}", said(&outcome)))
    }

    fn refusals(&self, program: &str) -> Result<(), String> {
        let refused: [(&[&str], &str); 5] = [
            (&["--sound", "wav:/no/such/folder/x.wav"], "cannot write /no/such/folder/x.wav"),
            (&["--sound", "alsa"], "expected wav:FILE, host or none"),
            (&["--sound-rate", "48000"], "--sound-rate: there is no file to have it"),
            (&["--sound", "none", "--sound-rate", "48000"], "--sound-rate: there is no file to have it"),
            (&["--sound", "wav:/dev/null", "--sound-rate", "1"], "1 is not in 8000..=192000"),
        ];
        for (words, sentence) in refused {
            let mut command = runner_command(&self.options.runner);
            command.args(words).args([program, "second"]);
            let outcome = process::run(command, Vec::new(), self.options.case_timeout)?;
            expect(&said(&outcome), &[sentence])?;
            if !outcome.stdout.is_empty() {
                return Err(format!("{words:?}: it ran"));
            }
        }
        let mut command = runner_command(&self.options.runner);
        command.args([program, "second"]);
        expect(&said(&process::run(command, Vec::new(), self.options.case_timeout)?), &["ENODEV"])
    }
}

/// A program that nobody here wrote.
struct Player {
    name: &'static str,
    /// Programs and files that must be on this host.
    needs: &'static [&'static str],
    with: &'static [&'static str],
    words: &'static [&'static str],
    rate: usize,
    frames: usize,
    /// Makes another file of it; which, and what is in it.
    encode: Option<Encode>,
}

/// Stands for the file among the words.
const FILE: &str = "FILE";
const SOX_OSS: &str = "/usr/lib/x86_64-linux-gnu/sox/libsox_fmt_oss.so";
const ALSA_OSS: &str = "/usr/lib/x86_64-linux-gnu/alsa-lib/libasound_module_pcm_oss.so";
const ALSA: &str = "/usr/share/alsa";

/// sox 14.4.2 ends by a signal, on Linux too, unless its last buffer of 4,096 frames is full; ffmpeg writes whole buffers of 1,024
/// frames only.
const WHOLE_BUFFERS: usize = 11 * 4096;

const PLAYERS: &[Player] = &[
    Player {
        name: "sox",
        needs: &["sox", SOX_OSS],
        with: &[SOX_OSS],
        words: &["sox", "-q", FILE, "-t", "oss", "/dev/dsp"],
        rate: 44_100,
        frames: WHOLE_BUFFERS,
        encode: None,
    },
    Player {
        name: "aplay",
        needs: &["aplay", ALSA_OSS, ALSA],
        with: &[ALSA_OSS, ALSA],
        words: &["aplay", "-q", "-D", "oss", FILE],
        rate: 48_000,
        frames: 48_000,
        encode: None,
    },
    Player {
        name: "ffmpeg",
        needs: &["ffmpeg"],
        with: &[],
        words: &["ffmpeg", "-nostdin", "-loglevel", "error", "-i", FILE, "-f", "oss", "/dev/dsp"],
        rate: 48_000,
        frames: WHOLE_BUFFERS,
        encode: None,
    },
    Player {
        name: "mpg123",
        needs: &["mpg123", "lame", "/usr/lib/x86_64-linux-gnu/mpg123"],
        with: &["/usr/lib/x86_64-linux-gnu/mpg123"],
        words: &["mpg123", "-q", "-o", "oss", FILE],
        rate: 44_100,
        frames: RATE,
        encode: Some(as_mp3),
    },
];

/// The same as MP3, and what mpg123 makes of that on this host.
fn as_mp3(stage: &Stage<'_>, file: &Path) -> Result<(PathBuf, Vec<Frame>), String> {
    let (small, large) = (stage.at("noise.mp3"), stage.at("decoded.wav"));
    let run = |program: &str, words: &[&Path]| match Command::new(program).arg("--quiet").args(words).output() {
        Ok(output) if output.status.success() => Ok(()),
        other => Err(format!("{program}: {other:?}")),
    };
    run("lame", &[file, &small])?;
    run("mpg123", &[Path::new("-w"), &large, &small])?;
    let decoded = frames(&fs::read(&large).map_err(|error| error.to_string())?)?;
    Ok((small, decoded))
}

const SILENCE: Frame = [0; 2];

/// The frames of a WAV file of 16 bits and two channels.
pub(super) fn frames(wav: &[u8]) -> Result<Vec<Frame>, String> {
    let data = wav.windows(4).position(|word| word == b"data").ok_or("the file has no samples")?;
    let samples = |frame: &[u8]| [0, 2].map(|at| i16::from_le_bytes([frame[at], frame[at + 1]]));
    let bytes = &wav[data + 8..];
    let says = u32::from_le_bytes(wav[data + 4..data + 8].try_into().map_err(|_| "no length")?) as usize;
    // mpg123 writes `unknown` first and corrects it.
    if says != bytes.len() {
        return Err(format!("the file says {says} bytes and has {}", bytes.len()));
    }
    Ok(bytes.chunks_exact(4).map(samples).collect())
}

fn wav(frames: &[Frame], rate: usize) -> Vec<u8> {
    let bytes = frames.len() as u32 * 4;
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut file = [b"RIFF", &words(&[bytes + 36])[..], b"WAVEfmt ", &words(&[16, 2 << 16 | 1])].concat();
    file.extend(words(&[rate as u32, rate as u32 * 4, 16 << 16 | 4]));
    file.extend([b"data".as_slice(), &words(&[bytes])].concat());
    file.extend(frames.iter().flatten().flat_map(|sample| sample.to_le_bytes()));
    file
}

/// Those of the pattern of `dsp.c`.
pub(super) fn pattern(count: usize) -> Vec<Frame> {
    let word = |number: u32| number.wrapping_mul(0x9E37_79B9) | 0x0001_0001;
    (1..=count as u32).map(word).map(|frame| [frame as i16, (frame >> 16) as i16]).collect()
}

/// What `formats` plays: µ-law at 8,000, twice as fast in 8 bits, then in 16, all on both sides; between two frames of the first goes a
/// straight line. The numbers are G.711's. Between settings there is silence, and some of these samples are silent, too: they are not
/// compared.
fn formats() -> Vec<Frame> {
    let codes: Vec<u8> = (0..8000u32).map(|number| ((number * 97 + 1) % 251) as u8).collect();
    let law = |code: u8| {
        let (segment, step) = (i32::from(!code >> 4 & 7), i32::from(!code & 15));
        let magnitude = ((33 + 2 * step) << segment) - 33;
        4 * if code < 128 { -magnitude } else { magnitude }
    };
    let mut before = 0;
    let slow = codes.iter().flat_map(|code| {
        let (from, to) = (std::mem::replace(&mut before, law(*code)), law(*code));
        [from + (to - from) / 2, to]
    });
    let mut samples: Vec<i32> = slow.collect();
    samples.extend(codes.iter().map(|code| (i32::from(*code) - 128) * 256));
    samples.extend(codes.chunks(2).map(|pair| i32::from(i16::from_be_bytes([pair[0], pair[1]]))));
    samples.into_iter().map(|sample| [sample as i16; 2]).collect()
}

/// Without the silence before and behind.
pub(super) fn trimmed(frames: &[Frame]) -> &[Frame] {
    let sounds = |frame: &Frame| *frame != SILENCE;
    let first = frames.iter().position(sounds).unwrap_or(frames.len());
    let end = frames.iter().rposition(sounds).map_or(first, |last| last + 1);
    &frames[first..end]
}

/// Without any silence.
fn sounding(frames: &[Frame]) -> Vec<Frame> {
    frames.iter().copied().filter(|frame| *frame != SILENCE).collect()
}

pub(super) fn same(expected: &[Frame], heard: &[Frame]) -> Result<(), String> {
    if expected == heard {
        return Ok(());
    }
    let at = expected.iter().zip(heard).take_while(|(one, other)| one == other).count();
    let [wanted, got] = [expected.get(at), heard.get(at)];
    Err(format!("frame {at} is {got:?} instead of {wanted:?}; {} frames instead of {}", heard.len(), expected.len()))
}
