//! Where the nodes of a graph are drawn: in columns, so that most arcs lead to the right.

use super::graph::Graph;

/// What stands where.
pub struct Columns {
    /// What each column holds, from top to bottom: nodes, and bends, whose numbers follow those of the nodes.
    pub columns: Vec<Vec<usize>>,
    /// For each arc its bends from left to right: one in each column that it passes, where it has room of its own.
    pub bends: Vec<Vec<usize>>,
}

impl Columns {
    pub fn of(graph: &Graph) -> Columns {
        let forward = without_cycles(graph);
        let mut column = vec![0; graph.nodes.len()];
        // The longest way to a node says its column. Without cycles this ends after as many rounds as there are nodes.
        for _ in 0..graph.nodes.len() {
            for &(from, to) in forward.iter().flatten() {
                column[to] = column[to].max(column[from] + 1);
            }
        }
        let mut columns = vec![Vec::new(); column.iter().max().map_or(0, |last| last + 1)];
        for (node, &place) in column.iter().enumerate() {
            columns[place].push(node);
        }
        let (mut next, mut steps, mut bends) = (graph.nodes.len(), Vec::new(), Vec::new());
        for arc in forward {
            let mut own = Vec::new();
            if let Some((from, to)) = arc {
                for passed in &mut columns[column[from] + 1..column[to]] {
                    passed.push(next);
                    own.push(next);
                    next += 1;
                }
                let stops: Vec<_> = [from].into_iter().chain(own.iter().copied()).chain([to]).collect();
                steps.extend(stops.windows(2).map(|pair| (pair[0], pair[1])));
            }
            bends.push(own);
        }
        for _ in 0..4 {
            untangle(&mut columns, &steps);
        }
        Columns { columns, bends }
    }
}

/// The arcs, turned round where they would close a cycle; none for one that leads to where it comes from.
fn without_cycles(graph: &Graph) -> Vec<Option<(usize, usize)>> {
    let mut kept: Vec<(usize, usize)> = Vec::new();
    let turn = |arc: &super::graph::Arc| {
        if arc.from == arc.to {
            return None;
        }
        let closes = reaches(&kept, arc.to, arc.from);
        kept.push(if closes { (arc.to, arc.from) } else { (arc.from, arc.to) });
        kept.last().copied()
    };
    graph.arcs.iter().map(turn).collect()
}

fn reaches(arcs: &[(usize, usize)], from: usize, to: usize) -> bool {
    let (mut seen, mut open) = (Vec::new(), vec![from]);
    while let Some(node) = open.pop() {
        if node == to {
            return true;
        }
        if !seen.contains(&node) {
            seen.push(node);
            open.extend(arcs.iter().filter(|(start, _)| *start == node).map(|(_, end)| *end));
        }
    }
    false
}

/// Sorts each column by where the neighbours are, so that arcs cross less.
fn untangle(columns: &mut [Vec<usize>], arcs: &[(usize, usize)]) {
    for index in 0..columns.len() {
        let height = |columns: &[Vec<usize>], node: usize| {
            let place = |column: &Vec<usize>| {
                let at = column.iter().position(|known| *known == node)?;
                Some((at as f64 + 0.5) / column.len() as f64)
            };
            columns.iter().find_map(place).unwrap_or(0.5)
        };
        let mean = |node: usize| {
            let sides = arcs.iter().filter_map(|&(from, to)| match node {
                _ if from == node => Some(to),
                _ if to == node => Some(from),
                _ => None,
            });
            let heights: Vec<f64> = sides.map(|side| height(columns, side)).collect();
            if heights.is_empty() { 0.5 } else { heights.iter().sum::<f64>() / heights.len() as f64 }
        };
        let mut sorted: Vec<_> = columns[index].iter().map(|&node| (mean(node), node)).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        columns[index] = sorted.into_iter().map(|(_, node)| node).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::super::graph::tests::pipeline;
    use super::*;

    #[test]
    fn what_flows_leads_to_the_right_and_cycles_end() {
        let graph = pipeline();
        let Columns { columns, bends } = Columns::of(&graph);
        let column = |node| columns.iter().position(|column| column.contains(&node)).unwrap();
        // yes, the pipe, head.
        assert!(column(0) < column(3) && column(3) < column(1), "{columns:?}");
        let passed: usize = bends.iter().map(Vec::len).sum();
        assert_eq!(columns.iter().map(Vec::len).sum::<usize>(), 4 + passed);
        assert!(passed > 0, "yes writes to the terminal behind the pipe");
    }

    #[test]
    fn nothing_is_no_columns() {
        assert!(Columns::of(&Graph::default()).columns.is_empty());
    }
}
