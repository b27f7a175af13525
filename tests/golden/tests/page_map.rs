//! What machine code finds of a file: for each page where its bytes are.

use std::sync::{Arc, Mutex};

use golden::bench;
use kernel::file::{Content, NewNode, Node, Time, Volume};

const PAGE: u64 = 4096;

/// The tests share the bench's frames, which know no lock.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn file(mode: u32, bytes: &[u8]) -> Arc<Node> {
    let volume = Volume::in_memory(bench().pool).unwrap();
    let node = Node::nameless(&volume, b"", NewNode { mode, user: 0, group: 0, now: Time::default() });
    let node = node.expect("room for a node");
    node.content().unwrap().write_at(0, bytes).unwrap();
    node
}

fn word(address: u64) -> u64 {
    // SAFETY: the content's words and its map are there as long as the file, and nobody changes them meanwhile.
    unsafe { (address as *const u64).read() }
}

/// Bit per page of leaf `number`: its address is known, and what is there is what the file has there.
fn shown(content: &Content, number: u64) -> u64 {
    let words = content.words();
    assert!(number < words.leaves.get());
    let leaf = word(words.directory.get() + number * 8);
    let pages = (0..64).filter(|page| {
        let address = word(leaf + page * 8);
        let mut there = [0; 8];
        content.read_at((number * 64 + page) * PAGE, &mut there);
        assert!(address == 0 || word(address) == u64::from_le_bytes(there), "page {page} of leaf {number}");
        address != 0
    });
    pages.fold(0, |bits, page| bits | 1 << page)
}

#[test]
fn machine_code_sees_the_pages_that_are_there() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    let node = file(0o644, &[1; 3 * PAGE as usize]);
    let content = node.content().unwrap();
    assert_eq!(content.words().leaves.get(), 0);
    node.show_page(bench(), PAGE);
    assert_eq!((content.words().leaves.get(), shown(content, 0)), (1, 0b111));
    content.write_at(4 * PAGE, b"more of it").unwrap();
    assert_eq!(shown(content, 0), 0b10111);
    content.punch_hole(PAGE..2 * PAGE).unwrap();
    assert_eq!(shown(content, 0), 0b10101);
    content.write_at(200 * PAGE, b"far away").unwrap();
    node.show_page(bench(), 200 * PAGE);
    assert_eq!((content.words().leaves.get(), shown(content, 1), shown(content, 3)), (4, 0, 1 << 8));
    content.resize(PAGE + 1).unwrap();
    assert_eq!((shown(content, 0), shown(content, 3)), (1, 0));
    content.resize(0).unwrap();
    assert_eq!((shown(content, 0), shown(content, 3)), (0, 0));
}

/// A routine writes without looking at the mode, and has no leaf for what lies far behind.
#[test]
fn some_files_have_no_page_for_machine_code() {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    let node = file(0o4755, &[1; 8]);
    node.show_page(bench(), 0);
    assert_eq!(node.content().unwrap().words().leaves.get(), 0);
    let node = file(0o644, &[1; 8]);
    let content = node.content().unwrap();
    content.write_at(1 << 40, b"very far").unwrap();
    node.show_page(bench(), 1 << 40);
    assert_eq!(content.words().leaves.get(), 0);
}
