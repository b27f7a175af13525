//! Trees of names outside of the machine: where the tool wants them seen.
#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "before any program runs")]

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use bootimage::ConfigView;
use kernel::file::share::{Service, Share};
use kernel::file::{
    Capabilities, Credentials, FinalLink, ForeignTree, Layer, Mount, Namespace, Node, Rules, Time, View, Volume,
};

use machine::Courier;

use super::Ingredients;

/// Folders that are always in memory, whatever the other side has there.
const ALONE: [&[u8]; 4] = [b"/dev", b"/proc", b"/sys", b"/tmp"];

const NO_FOLDERS: &str = "this machine has no folders outside of itself";

/// What becomes of the configuration's folders.
pub type Join = fn(&Ingredients, &ConfigView<'_>, Namespace) -> Result<Namespace, String>;

/// Minor number of the device that the first shared folder seems to be.
const FIRST_DEVICE: u32 = 0x40;

/// All is in memory but the folders that the configuration names: those are shared by devices, which are called by their places in it.
///
/// # Errors
/// A sentence: there is no such device, or it does not do.
pub fn join_shares(ingredients: &Ingredients, config: &ConfigView<'_>, names: Namespace) -> Result<Namespace, String> {
    if config.folders().next().is_none() {
        return Ok(names);
    }
    let couriers: Vec<&'static dyn Courier> = core::iter::from_fn(|| ingredients.machine.next_courier()).collect();
    let mut uppers = Vec::new();
    for (index, path) in config.folders().enumerate() {
        share(ingredients, config, &names, (&couriers, &mut uppers), (index, path))
            .map_err(|reason| format!("the folder {} cannot be shared: {reason}", String::from_utf8_lossy(path)))?;
    }
    Ok(names)
}

/// How a shared folder is seen, as the end of its device's label says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    AsItIs,
    ReadOnly,
    /// Below what is in memory: it is seen, and what is changed stays in memory.
    Below,
    /// Between memory and what is below: what machines before have left there, as in the upper directory of an overlay.
    Upper,
    /// Not at all: what its path stands for is brought there when the machine ends.
    Out,
    /// Not at all: what programs have changed is brought there when the machine ends.
    Changes,
}

impl Manner {
    fn of(end: &[u8]) -> Option<Manner> {
        match end {
            b"" => Some(Manner::AsItIs),
            b"ro" => Some(Manner::ReadOnly),
            b"below" => Some(Manner::Below),
            b"upper" => Some(Manner::Upper),
            b"out" => Some(Manner::Out),
            b"changes" => Some(Manner::Changes),
            _ => None,
        }
    }
}

/// Mounts the folder with this number over whatever memory has there, or lays that over it, and over the uppers that came before.
fn share(
    ingredients: &Ingredients,
    config: &ConfigView<'_>,
    names: &Namespace,
    (couriers, uppers): (&[&'static dyn Courier], &mut Vec<Layer>),
    (index, path): (usize, &[u8]),
) -> Result<(), String> {
    let label = format!("share{index}");
    let found = couriers.iter().find_map(|courier| {
        let rest = courier.label().strip_prefix(label.as_bytes())?;
        Some((*courier, Manner::of(rest)?))
    });
    let (courier, manner) = found.ok_or("the machine has no device for it")?;
    let is_read_only = !matches!(manner, Manner::AsItIs | Manner::Out | Manner::Changes);
    let (user, group) = (config.host_user, config.host_group);
    let service = Service { user, group, is_read_only, device: FIRST_DEVICE + index as u32 };
    let told = |error: Errno| String::from(error.message());
    let share = Share::start(courier, service).map_err(told)?;
    // Whoever runs the machine asks, so what the first user may is left to him; others are held to the mode bits first.
    let tree = Arc::new(ForeignTree::of_share(share, Credentials::root()).map_err(told)?);
    let volume = Volume::of(ingredients.pool, tree.clone()).map_err(told)?;
    let root = tree.top(&volume, 0, None).map_err(told)?;
    let alone = || ALONE.iter().filter_map(|path| find(names, path).ok()).collect::<Vec<Arc<Node>>>();
    match manner {
        Manner::Out => return names.bring_out(path, root).map_err(told),
        Manner::Changes => {
            names.bring_changes(root, alone());
            return Ok(());
        }
        Manner::Upper => {
            uppers.push(Layer { directory: root, has_marks: true });
            return Ok(());
        }
        Manner::AsItIs | Manner::ReadOnly | Manner::Below => {}
    }
    let point = if path == b"/" { names.root().clone() } else { make_directories(names, path).map_err(told)? };
    if manner == Manner::Below {
        let alone = alone();
        let is_alone = |node: &Arc<Node>| alone.iter().any(|alone| Arc::ptr_eq(alone, node));
        uppers.push(Layer { directory: root, has_marks: false });
        return point.lay_over(&core::mem::take(uppers), &is_alone).map_err(told);
    }
    let (source, kind) = (Arc::from(label.as_bytes()), Arc::from(b"9p".as_slice()));
    names.mount(Mount { point, root: root.clone(), source, kind, options: Arc::from([].as_slice()) }).map_err(told)?;
    if is_read_only {
        let rules = Rules { mount_read_only: true, ..volume.rules() };
        names.remount(&root, rules, None).map_err(told)?;
    }
    Ok(())
}

/// For whom the first program runs.
pub fn user(config: &ConfigView<'_>) -> Credentials {
    let groups: Vec<u32> = config.groups().collect();
    let capabilities = Capabilities::of_user(config.user);
    Credentials { user: config.user, group: config.group, groups: groups.into(), capabilities }
}

/// Joins the trees that the configuration names with `names`, which so far are all in memory.
///
/// # Errors
/// A sentence: the machine has no such tree, or it cannot be mounted.
pub fn join(ingredients: &Ingredients, config: &ConfigView<'_>, names: Namespace) -> Result<Namespace, String> {
    if config.folders().next().is_none() {
        return Ok(names);
    }
    let far = ingredients.machine.foreign().ok_or(NO_FOLDERS)?;
    let failed = |path: &[u8], error: Errno| {
        format!("the folder {} cannot be joined: {}", String::from_utf8_lossy(path), error.message())
    };
    let tree = Arc::new(ForeignTree::new(far, user(config)));
    let volume = Volume::of(ingredients.pool, tree.clone()).map_err(|error| failed(b"/", error))?;
    let memory = names.root().clone();
    let covers_root = config.folders().next() == Some(b"/");
    let joined = if covers_root {
        let top = tree.top(&volume, 0, Some(memory.clone())).map_err(|error| failed(b"/", error))?;
        show_alone(&tree, config, &names);
        Namespace::over(top, memory.volume().clone())
    } else {
        Namespace::over(memory.clone(), memory.volume().clone())
    };
    let joined = joined.map_err(|error| failed(b"/", error))?;
    for (index, path) in config.folders().enumerate().skip(usize::from(covers_root)) {
        mount(&names, &joined, (&tree, &volume), index, path).map_err(|error| failed(path, error))?;
    }
    Ok(joined)
}

fn show_alone(tree: &ForeignTree, config: &ConfigView<'_>, memory: &Namespace) {
    for path in ALONE.into_iter().chain(config.memory()) {
        if let Ok(node) = find(memory, path) {
            tree.show_alone(&node);
        }
    }
}

fn find(names: &Namespace, path: &[u8]) -> Result<Arc<Node>, Errno> {
    let credentials = Credentials::root();
    let view = View::new(names.root(), names.root(), &credentials);
    names.lookup(view, path, FinalLink::Follow)
}

/// Mounts tree `index` at a directory in memory, which is made if it is missing.
fn mount(
    memory: &Namespace,
    joined: &Namespace,
    (tree, volume): (&ForeignTree, &Arc<Volume>),
    index: usize,
    path: &[u8],
) -> Result<(), Errno> {
    // What the archive has there is laid over it.
    let point = make_directories(memory, path)?;
    let root = tree.top(volume, index, Some(point.clone()))?;
    let (source, kind) = (Arc::from(b"folder".as_slice()), Arc::from(b"folder".as_slice()));
    joined.mount(Mount { point, root, source, kind, options: Arc::from([].as_slice()) })
}

/// The directory in memory with this path; it and those on the way are made where they are missing.
fn make_directories(memory: &Namespace, path: &[u8]) -> Result<Arc<Node>, Errno> {
    let credentials = Credentials::root();
    let view = View::new(memory.root(), memory.root(), &credentials);
    let ends = path.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    for end in ends.chain([path.len()]) {
        match memory.make_directory(view, &path[..end], 0o755, Time::default()) {
            Ok(_) | Err(Errno::EEXIST) => {}
            Err(error) => return Err(error),
        }
    }
    find(memory, path)
}
