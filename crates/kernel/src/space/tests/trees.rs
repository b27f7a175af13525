//! Pages by number.

use alloc::vec::Vec;

use super::super::PageTree;
use super::pool;

#[test]
fn a_visit_shows_what_looking_up_each_page_shows() {
    let pool = pool(64);
    // No table, one, some at two levels, one high up: holes between them and at their ends.
    let pages: [&[u64]; 5] = [&[], &[0], &[0, 1, 5, 63], &[3, 62, 63, 64, 65, 200, 4095], &[1, 70_000, 70_001]];
    for present in pages {
        let mut tree = PageTree::new();
        for &index in present {
            tree.insert(index, pool.allocate().unwrap()).unwrap();
        }
        for (start, end) in [(0, 1), (0, 16), (48, 80), (60, 70), (4_090, 4_100), (69_990, 70_016), (5, 5), (0, 300)] {
            let mut seen = Vec::new();
            tree.visit(start..end, &mut |index, page| seen.push((index, page.frame())));
            let each = (start..end).filter_map(|index| Some((index, tree.get(index)?.frame())));
            assert!(each.eq(seen.iter().copied()), "{present:?} in {start}..{end}: {seen:?}");
        }
    }
}
