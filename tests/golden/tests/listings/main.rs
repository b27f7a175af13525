//! The golden listings: every template and every routine made of them, disassembled, against `docs/listings`. A change of
//! machine code shows as a change of text, to be reviewed. `UPDATE_GOLDEN=1` writes the listings anew.

mod claims;
mod decoder;
mod diff;
mod disassembly;
mod optimizer;
mod routines;
mod special;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use kernel::call::watch::WatchWords;
use quaject::Quaject;
use synth::Template;

/// The root of the repository.
fn root() -> PathBuf {
    PathBuf::from(env!("SYNTHESIS_ROOT"))
}

/// Every template of the kernel and of the pc machine: those that classes declare, and those that are pasted elsewhere.
fn all_templates() -> Vec<Template> {
    let mut all = Vec::new();
    let mut classes = kernel::classes().collect::<Vec<_>>();
    classes.push(WatchWords::class());
    machine_pc::each_class(&mut |class| classes.push(class));
    classes.iter().for_each(|class| class.each_template(|template| all.push(template)));
    all.extend(kernel::call::common_templates());
    all.extend(
        [
            machine_pc::sample_templates().as_slice(),
            &machine_pc::receive_templates(),
            &kernel::interrupt::templates(),
            &machine_pc::timer_templates(),
            &machine_pc::call_templates(),
            &machine_pc::transmit_templates(),
            &machine_pc::handover_templates(),
            &machine_pc::thread_templates().map(|(_, template)| template),
            &statemachine::templates(),
        ]
        .concat(),
    );
    all
}

/// Compares with the committed listings in `folder`, or writes them.
fn check(folder: &str, listings: &[(String, String)]) {
    let folder = root().join("docs/listings").join(folder);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(&folder).expect("docs/listings can be made");
        for (name, text) in listings {
            std::fs::write(folder.join(format!("{name}.txt")), text).expect("docs/listings can be written");
        }
    }
    let mut different = 0;
    for (name, text) in listings {
        let path = folder.join(format!("{name}.txt"));
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        if committed != *text {
            different += 1;
            println!("{}:\n{}", path.display(), diff::lines(&committed, text));
        }
    }
    assert_eq!(different, 0, "listings differ; if the change is wanted: UPDATE_GOLDEN=1 cargo test -p golden");
    let files = std::fs::read_dir(&folder).expect("the folder was just read").flatten();
    let files = files.map(|file| file.file_name().into_string().unwrap_or_default());
    let is_known = |file: &String| listings.iter().any(|(name, _)| *file == format!("{name}.txt"));
    let strays: Vec<String> = files.filter(|file| file.ends_with(".txt") && !is_known(file)).collect();
    assert!(strays.is_empty(), "listings of nothing: {strays:?}");
}

#[test]
fn templates_are_as_committed() {
    let listing = |template: &Template| (template.shape.name.to_string(), disassembly::template(template));
    check("templates", &all_templates().iter().map(listing).collect::<Vec<_>>());
}

/// Routines are made one after the other: they share a code store.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[test]
fn routines_are_as_committed() {
    check("", &routines::all());
    check("optimizer", &optimizer::all());
    check("special", &special::all());
}

/// `docs/listings/compositions.md`: at least twenty, each with its listing, and none of a declared quaject left out.
#[test]
fn the_commonest_compositions_are_listed() {
    let folder = root().join("docs/listings");
    let index = std::fs::read_to_string(folder.join("compositions.md")).expect("the index is there");
    let rows = index.lines().filter(|line| line.starts_with("| ") && line.contains(".txt)"));
    let rows: Vec<Vec<&str>> = rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect();
    assert!(rows.len() >= 20, "{} compositions", rows.len());
    for row in &rows {
        for file in row[3].split(", ").filter_map(|link| link.strip_prefix('[')?.split_once(']')).map(|link| link.0) {
            assert!(file.starts_with(row[1]) && folder.join(file).exists(), "{}: no listing {file}", row[1]);
        }
    }
    let mut classes = kernel::classes().collect::<Vec<_>>();
    classes.push(WatchWords::class());
    machine_pc::each_class(&mut |class| classes.push(class));
    for callentry in classes.iter().flat_map(|class| class.callentries) {
        // Host files are opened on the hosted machine alone: their routines wait for a listing.
        let listed = |routine: &&str| routine.starts_with("outside.") || rows.iter().any(|row| row[1] == *routine);
        assert!(callentry.routines.iter().any(listed), "none of {:?} is in the index", callentry.routines);
    }
}

#[test]
fn costs_are_as_claimed() {
    let wrong: Vec<String> = all_templates().iter().filter_map(claims::check_cost).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn debuggers_find_the_return_address() {
    // While somebody is told, the program's registers lie deeper: a debugger that stops there sees no caller. Sleep and wake are the pc's.
    let all = routines::all();
    let all = all.iter().filter(|(name, _)| name != "watch.told" && !name.starts_with("cpu."));
    let wrong: Vec<String> = all.filter_map(|(name, listing)| claims::check_return_address(name, listing)).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
