//! What differs between two texts, line by line.

/// Lines that only `old` has with `-`, lines that only `new` has with `+`, and two of the common lines around them.
pub fn lines(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    // common[i][j]: length of the longest common part of old[i..] and new[j..].
    let mut common = vec![vec![0usize; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            let skip = common[i + 1][j].max(common[i][j + 1]);
            common[i][j] = if old[i] == new[j] { common[i + 1][j + 1] + 1 } else { skip };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut marked = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            marked.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || i < old.len() && common[i + 1][j] >= common[i][j + 1] {
            marked.push(('-', old[i]));
            i += 1;
        } else {
            marked.push(('+', new[j]));
            j += 1;
        }
    }
    let near = |at: usize| marked[at.saturating_sub(2)..(at + 3).min(marked.len())].iter().any(|line| line.0 != ' ');
    let shown = marked.iter().enumerate().filter(|(at, _)| near(*at));
    shown.map(|(_, (mark, line))| format!("{mark} {line}\n")).collect()
}
