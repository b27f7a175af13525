//! The file system raced against the host's on random operations. A failure prints its seed;
//! `SYNTH_SEED=number` repeats it.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::*;

const STEPS: usize = 6_000;
const FRAMES: u32 = 8192;
/// Directories above the scene, so that no chain of `..` through 40 symlinks climbs out of it.
const DEPTH: usize = 50;
/// Linux open flags (x86-64).
const O_DIRECTORY: i32 = 0o200000;
const O_NOFOLLOW: i32 = 0o400000;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % limit
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    fn name(&mut self) -> &'static str {
        match self.below(30) {
            0 => ".",
            1 => "..",
            other => ["sa", "sb", "sc", "sd", "se"][other as usize % 5],
        }
    }

    fn path(&mut self) -> String {
        let mut path = String::from(self.name());
        while self.below(5) < 2 && path.len() < 16 {
            path += if self.one_in(10) { "//" } else { "/" };
            path += self.name();
        }
        if self.one_in(12) {
            path += "/";
        }
        path
    }
}

/// The same tree twice.
struct Scene {
    world: World,
    /// Where the tree starts here.
    base: Arc<Node>,
    /// Where it starts on the host.
    host: PathBuf,
    _top: Top,
    /// Files open on both sides.
    handles: Vec<(fs::File, Arc<Node>)>,
    random: Random,
}

/// The host directory above the scene; it goes with the scene.
struct Top(PathBuf);

impl Drop for Top {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What an operation gave, in a form that both sides can give.
type Outcome = Result<String, i32>;

fn host_says(result: io::Result<String>) -> Outcome {
    result.map_err(|error| error.raw_os_error().expect("an error of the host"))
}

fn we_say<T>(result: Result<T, Errno>, tell: impl FnOnce(T) -> String) -> Outcome {
    result.map(tell).map_err(|error| error as i32)
}

fn nothing<T>(_: T) -> String {
    String::new()
}

impl Scene {
    fn new(seed: u64) -> Scene {
        let top = std::env::temp_dir().join(format!("synthesis-file-{}-{seed}", std::process::id()));
        let nested = "n/".repeat(DEPTH);
        let host = top.join(nested.trim_end_matches('/'));
        fs::DirBuilder::new().mode(0o755).recursive(true).create(&host).unwrap();
        fs::set_permissions(&host, fs::Permissions::from_mode(0o755)).unwrap();
        let owner = fs::metadata(&host).unwrap();
        let mut world = World::with_frames(FRAMES);
        for end in 1..=DEPTH {
            world.mkdir(&nested[..end * 2]).unwrap();
        }
        // On the host every directory on the way belongs to who runs the test.
        for end in 1..=DEPTH {
            let directory = world.get(&nested[..end * 2]).unwrap();
            world.names.set_owner(&world.who, &directory, Some(owner.uid()), Some(owner.gid()), NOW).unwrap();
        }
        let base = world.get(&nested).unwrap();
        let capabilities = Capabilities::of_user(owner.uid());
        let groups = Arc::from([].as_slice());
        world.who = Credentials { user: owner.uid(), group: owner.gid(), groups, capabilities };
        Scene { world, base, host, _top: Top(top), handles: Vec::new(), random: Random(seed) }
    }

    fn host_path(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("{}/{path}", self.host.display()))
    }

    fn view(&self) -> View<'_> {
        self.world.at(&self.base)
    }

    /// One random operation on both sides: its name, what the host said, what we said.
    fn step(&mut self) -> (String, Outcome, Outcome) {
        let path = self.random.path();
        match self.random.below(16) {
            0 | 1 => self.open(path),
            2 => self.make_directory(path),
            3 => self.remove_directory(path),
            4 => self.unlink(path),
            5 | 6 => self.rename(path),
            7 => self.link(path),
            8 => self.symlink(path),
            9 => self.read_link(path),
            10 | 11 => self.stat(path),
            12 => self.chmod(path),
            13 => self.truncate(path),
            _ => self.use_handle(),
        }
    }

    fn open(&mut self, path: String) -> (String, Outcome, Outcome) {
        let random = &mut self.random;
        let (write, create) = (random.below(3) > 0, random.below(2) > 0);
        let exclusive = create && write && random.one_in(3);
        let truncate = write && !exclusive && random.one_in(4);
        let directory = !create && random.one_in(6);
        let no_follow = random.one_in(6);
        let create = create && write;
        let how = OpenHow {
            access: Access { read: true, write, execute: false },
            create: create.then_some(Create { mode: 0o600, exclusive }),
            truncate,
            directory,
            no_follow,
            ..OpenHow::default()
        };
        let flags = if directory { O_DIRECTORY } else { 0 } | if no_follow { O_NOFOLLOW } else { 0 };
        let mut options = fs::OpenOptions::new();
        options.read(true).write(write).create(create && !exclusive).create_new(exclusive);
        options.truncate(truncate).mode(0o600).custom_flags(flags);
        let opened = options.open(self.host_path(&path));
        let ours = self.world.names.open(self.view(), path.as_bytes(), how, NOW);
        let ours = ours.and_then(|opened| self.world.cut(opened));
        let done = format!("open {path} {how:?}");
        if let (Ok(file), Ok(ours)) = (&opened, &ours)
            && ours.node.content().is_some()
        {
            self.handles.truncate(5);
            self.handles.insert(0, (file.try_clone().unwrap(), ours.node.clone()));
        }
        (done, host_says(opened.map(nothing)), we_say(ours, nothing))
    }

    fn make_directory(&mut self, path: String) -> (String, Outcome, Outcome) {
        let host = fs::DirBuilder::new().mode(0o700).create(self.host_path(&path));
        let ours = self.world.names.make_directory(self.view(), path.as_bytes(), 0o700, NOW);
        (format!("mkdir {path}"), host_says(host.map(nothing)), we_say(ours, nothing))
    }

    fn remove_directory(&mut self, path: String) -> (String, Outcome, Outcome) {
        let host = fs::remove_dir(self.host_path(&path));
        let ours = self.world.names.remove_directory(self.view(), path.as_bytes(), NOW);
        (format!("rmdir {path}"), host_says(host.map(nothing)), we_say(ours, nothing))
    }

    fn unlink(&mut self, path: String) -> (String, Outcome, Outcome) {
        let host = fs::remove_file(self.host_path(&path));
        let ours = self.world.names.unlink(self.view(), path.as_bytes(), NOW).map(drop);
        (format!("unlink {path}"), host_says(host.map(nothing)), we_say(ours, nothing))
    }

    fn rename(&mut self, old: String) -> (String, Outcome, Outcome) {
        let new = self.random.path();
        let host = fs::rename(self.host_path(&old), self.host_path(&new));
        let ends = ((self.view(), old.as_bytes()), (self.view(), new.as_bytes()));
        let ours = self.world.names.rename(ends.0, ends.1, RenameMode::Replace, NOW);
        (format!("rename {old} {new}"), host_says(host.map(nothing)), we_say(ours, nothing))
    }

    fn link(&mut self, old: String) -> (String, Outcome, Outcome) {
        let new = self.random.path();
        let host = fs::hard_link(self.host_path(&old), self.host_path(&new));
        let ends = ((self.view(), old.as_bytes()), (self.view(), new.as_bytes()));
        let ours = self.world.names.link(ends.0, ends.1, FinalLink::Keep, NOW);
        (format!("link {old} {new}"), host_says(host.map(nothing)), we_say(ours, nothing))
    }

    fn symlink(&mut self, path: String) -> (String, Outcome, Outcome) {
        let target = self.random.path();
        let host = symlink(&target, self.host_path(&path));
        let ours = self.world.names.make_symlink(self.view(), target.as_bytes(), path.as_bytes(), NOW);
        (format!("symlink {target} {path}"), host_says(host.map(nothing)), we_say(ours, nothing))
    }

    fn read_link(&mut self, path: String) -> (String, Outcome, Outcome) {
        let host = fs::read_link(self.host_path(&path)).map(|target| target.display().to_string());
        let node = self.world.names.lookup(self.view(), path.as_bytes(), FinalLink::Keep);
        let ours = we_say(node.and_then(|node| node.link_target()), |target| match target {
            LinkTarget::Path(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            LinkTarget::Node(..) => unreachable!("nothing is produced here"),
        });
        (format!("readlink {path}"), host_says(host), ours)
    }

    fn stat(&mut self, path: String) -> (String, Outcome, Outcome) {
        let follow = self.random.one_in(2);
        let host_path = self.host_path(&path);
        let host = if follow { fs::metadata(host_path) } else { fs::symlink_metadata(host_path) };
        let last = if follow { FinalLink::Follow } else { FinalLink::Keep };
        let ours = self.world.names.lookup(self.view(), path.as_bytes(), last);
        let told = host_says(host.map(|data| tell_host(&data)));
        (format!("stat {path} {last:?}"), told, we_say(ours, |node| tell(&node)))
    }

    fn chmod(&mut self, path: String) -> (String, Outcome, Outcome) {
        const MODES: [u32; 8] = [0o755, 0o700, 0o644, 0o500, 0o000, 0o1777, 0o2775, 0o777];
        let mode = MODES[self.random.below(8) as usize];
        // The mode of what is above the scene must stay, also where a link leads there: the host's paths come through it.
        let host_path = self.host_path(&path);
        if fs::canonicalize(&host_path).is_ok_and(|place| !place.starts_with(fs::canonicalize(&self.host).unwrap())) {
            return self.stat(path);
        }
        let host = fs::set_permissions(host_path, fs::Permissions::from_mode(mode));
        let node = self.world.names.lookup(self.view(), path.as_bytes(), FinalLink::Follow);
        let ours = node.and_then(|node| self.world.names.set_mode(&self.world.who, &node, mode, NOW));
        (format!("chmod {mode:o} {path}"), host_says(host.map(nothing)), we_say(ours, nothing))
    }

    fn truncate(&mut self, path: String) -> (String, Outcome, Outcome) {
        let size = self.random.below(20_000);
        let host = fs::OpenOptions::new().write(true).open(self.host_path(&path)).and_then(|file| file.set_len(size));
        let how = OpenHow { access: Access::WRITE, ..OpenHow::default() };
        let opened = self.world.names.open(self.view(), path.as_bytes(), how, NOW);
        let ours = opened.and_then(|opened| {
            bring_edge(&opened.node, size);
            opened.node.truncate(size, &self.world.who, NOW)
        });
        (format!("truncate {path} {size}"), host_says(host.map(nothing)), we_say(ours, nothing))
    }

    /// Reads or writes at a random place of a file that is open, perhaps unlinked.
    fn use_handle(&mut self) -> (String, Outcome, Outcome) {
        if self.handles.is_empty() {
            return ("nothing".into(), Ok(String::new()), Ok(String::new()));
        }
        let which = self.random.below(self.handles.len() as u64) as usize;
        let (at, bytes) = (self.random.below(40_000), self.random.below(9000) as usize);
        let value = self.random.below(256) as u8;
        let (file, node) = &self.handles[which];
        let content = node.content().unwrap();
        bring(node, at..at + bytes as u64);
        if let Ok(written) = file.write_at(&vec![value; bytes], at) {
            let ours = content.write_at(at, &vec![value; bytes]);
            node.note_write(&self.world.who, NOW);
            return ("write".into(), Ok(written.to_string()), we_say(ours, |count| count.to_string()));
        }
        let (mut host, mut mine) = (vec![1; bytes], vec![1; bytes]);
        let read = file.read_at(&mut host, at).map(|count| format!("{count} {:?}", &host[..count]));
        let count = content.read_at(at, &mut mine);
        ("read".into(), host_says(read), Ok(format!("{count} {:?}", &mine[..count])))
    }

    /// What there is becomes what a new tree lies over: what is open is closed.
    fn lay_over(&mut self) {
        self.handles.clear();
        let who = std::mem::replace(&mut self.world.who, Credentials::root());
        let world = World { who, ..World::over(&self.world) };
        self.world = world;
        self.base =
            self.world.names.lookup(root_view(&self.world), "n/".repeat(DEPTH).as_bytes(), FinalLink::Follow).unwrap();
    }

    /// Both trees hold the same.
    fn compare(&self, host: &Path, node: &Arc<Node>) {
        let data = fs::symlink_metadata(host).unwrap();
        assert_eq!(tell_host(&data), tell(node), "{}", host.display());
        if node.is_symlink() {
            return;
        }
        let open = if data.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(host, fs::Permissions::from_mode(open)).unwrap();
        self.world.names.set_mode(&self.world.who, node, open, NOW).unwrap();
        if !data.is_dir() {
            node.prepare().unwrap();
            bring(node, 0..u64::MAX);
            assert!(fs::read(host).unwrap() == read_all(node), "content of {}", host.display());
            return;
        }
        let mut names: Vec<String> =
            fs::read_dir(host).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        let mut ours = names_in(node);
        names.sort();
        ours.sort();
        assert_eq!(names, ours, "{}", host.display());
        for name in names {
            self.compare(&host.join(&name), &node.child(name.as_bytes()).unwrap());
        }
    }
}

fn tell_host(data: &fs::Metadata) -> String {
    assert!(!data.file_type().is_fifo());
    let size = if data.is_dir() { 0 } else { data.size() };
    format!("{:o} {} links, {}:{}, {size} bytes", data.mode(), data.nlink(), data.uid(), data.gid())
}

fn tell(node: &Node) -> String {
    let data = node.attributes();
    let size = if node.is_directory() { 0 } else { data.size_bytes };
    let mode = data.kind.mode_bits() | data.mode;
    format!("{mode:o} {} links, {}:{}, {size} bytes", data.links, data.user, data.group)
}

fn root_view(world: &World) -> View<'_> {
    static ROOT: std::sync::LazyLock<Credentials> = std::sync::LazyLock::new(Credentials::root);
    world.view_as(&ROOT)
}

/// What the opener of a file does before it uses such bytes.
fn bring(node: &Node, range: std::ops::Range<u64>) {
    while node.content().unwrap().bring(range.clone()).unwrap().is_some() {}
}

fn bring_edge(node: &Node, size: u64) {
    while node.content().is_some_and(|content| content.bring_edges(size..size).unwrap().is_some()) {}
}

/// Lays the tree over itself after so many steps.
fn race(seed: u64, layer_steps: usize) {
    let mut scene = Scene::new(seed);
    let mut history = Vec::new();
    for step in 0..STEPS {
        if step % layer_steps == layer_steps - 1 {
            scene.lay_over();
        }
        let (done, host, ours) = scene.step();
        let verdict = format!("seed {seed}, step {step}: {done}: host {host:?}, here {ours:?}");
        history.push(verdict);
        if host != ours {
            panic!("{}", history.split_off(history.len().saturating_sub(25)).join("\n"));
        }
    }
    let succeeded = history.iter().filter(|verdict| verdict.contains("here Ok")).count();
    // An ordinary user is refused more often than root.
    assert!(succeeded > STEPS / 10, "seed {seed}: only {succeeded} operations succeeded");
    scene.compare(&scene.host, &scene.base);
    let (pool, volume) = (scene.world.pool, scene.world.root.volume().clone());
    drop(scene);
    assert_eq!(pool.free_frames(), FRAMES as usize, "frames leaked");
    assert_eq!(volume.numbers().nodes_free, volume.numbers().nodes, "nodes leaked");
}

#[test]
fn random_operations_do_what_the_host_does() {
    if let Ok(seed) = std::env::var("SYNTH_SEED") {
        return race(seed.parse().unwrap(), usize::MAX);
    }
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    for seed in [1, 2, 3, clock | 1] {
        println!("seed {seed}");
        race(seed, usize::MAX);
    }
}

#[test]
fn random_operations_on_a_tree_over_others_do_what_the_host_does() {
    if let Ok(seed) = std::env::var("SYNTH_SEED") {
        return race(seed.parse().unwrap(), 700);
    }
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    for (seed, steps) in [(1, 100), (2, 700), (3, 3000), (clock | 1, 700)] {
        println!("seed {seed}");
        race(seed, steps);
    }
}
