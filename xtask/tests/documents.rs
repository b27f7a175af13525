//! Documents against sources.

use std::path::Path;

use xtask::calls;
use xtask::sources::{files, root, text};

/// The S-numbers of the specification: 1 to 144 without those that were never given.
fn specification() -> Vec<u32> {
    (1..=144).filter(|number| ![105, 128, 129, 138, 143].contains(number)).collect()
}

#[test]
fn every_s_number_has_one_row() {
    let text = text("docs/s-map.md");
    let number = |line: &str| line.strip_prefix("| S-")?.split(' ').next()?.parse().ok();
    let mut found: Vec<u32> = text.lines().filter_map(number).collect();
    found.sort();
    assert_eq!(found, specification());
}

#[test]
fn every_row_of_the_s_map_has_a_state() {
    for line in text("docs/s-map.md").lines().filter(|line| line.starts_with("| S-")) {
        let cells: Vec<&str> = line.split(" | ").collect();
        let state = cells.last().map_or("", |cell| cell.trim_end_matches(" |"));
        let known = ["library: ", "partly: "].iter().any(|start| state.starts_with(start));
        let known = known || state == "done" || state == "not yet";
        assert!(
            cells.len() == 5 && known,
            "five cells, the last `done`, `library: what`, `partly: what` or `not yet`: {line}"
        );
        assert!(state == "not yet" || cells[2] != "-", "no place: {line}");
        assert!(state != "done" || cells[3] != "-", "done without a test or a measurement: {line}");
    }
}

#[test]
fn the_s_map_counts_its_states() {
    let text = text("docs/s-map.md");
    let states = text.lines().filter(|line| line.starts_with("| S-")).filter_map(|line| line.rsplit(" | ").next());
    let states: Vec<&str> = states.collect();
    let counts = ["done", "library", "partly", "not yet"].map(|state| {
        let count = states.iter().filter(|other| other.starts_with(state)).count();
        format!("{count} {state}")
    });
    let sentence = format!("{}, of {}.", counts.join(", "), states.len());
    assert!(text.contains(&sentence), "the map should say: {sentence}");
}

/// Paths in backquotes that begin with a folder of the project name something that exists.
#[test]
fn documents_name_files_that_exist() {
    let roots = ["crates/", "cli/", "bin/", "bench/", "docs/", "xtask/", "tests/"];
    for document in
        files("docs", ".md").into_iter().chain(["README.md", "ARCHITECTURE.md", "CHANGELOG.md"].map(String::from))
    {
        let text = text(&document);
        for path in text.split('`').skip(1).step_by(2).filter(|word| roots.iter().any(|root| word.starts_with(root))) {
            let path = path.split([' ', ':', '*', '{']).next().unwrap_or("");
            assert!(root().join(path).exists(), "{document}: no file {path}");
        }
    }
}

#[test]
fn documents_link_to_files_that_exist() {
    for document in files(".", ".md") {
        let folder = Path::new(&document).parent().unwrap_or(Path::new(""));
        for link in text(&document).split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let local = !link.is_empty() && !link.contains("://");
            assert!(!local || root().join(folder).join(link).exists(), "{document}: no file {link}");
        }
    }
}

#[test]
fn the_list_of_calls_is_current() {
    assert!(calls::document() == text(calls::DOCUMENT), "run: cargo run -p xtask -- calls");
}

#[test]
fn every_decision_is_in_the_index() {
    let index = text("docs/adr/README.md");
    for file in files("docs/adr", ".md").iter().filter(|file| !file.ends_with("README.md")) {
        let name = file.rsplit('/').next().unwrap_or(file);
        let title = text(file).lines().next().unwrap_or("").trim_start_matches(['#', ' ', '0']).to_string();
        let title = title.split_once(['.', ':']).map_or("", |(_, title)| title.trim()).to_string();
        let row = index.lines().find(|line| line.contains(&format!("({name})")));
        assert!(row.is_some_and(|row| row.contains(&title)), "{name} is not in docs/adr/README.md as {title}");
    }
}

/// The rules that the code cites stand in CONTRIBUTING.md.
#[test]
fn rules_that_are_cited_are_written() {
    let written = text("CONTRIBUTING.md");
    for file in files("crates", ".rs") {
        for word in text(&file).split(|c: char| !c.is_ascii_alphanumeric()) {
            let number = word.strip_prefix('R').and_then(|number| number.parse::<u32>().ok());
            let is_rule = number.is_some_and(|number| (1..=10).contains(&number)) && !file.contains("machine-x86");
            assert!(!is_rule || written.contains(&format!("**{word}**")), "{file} cites {word}");
        }
    }
}
