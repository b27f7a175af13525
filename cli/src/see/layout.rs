//! Where the nodes of a graph are drawn: in columns, so that most arcs lead to the right.

use super::graph::Graph;

/// The node in each column, from top to bottom.
pub fn columns(graph: &Graph) -> Vec<Vec<usize>> {
    let forward = without_cycles(graph);
    let mut column = vec![0; graph.nodes.len()];
    // The longest way to a node says its column. Without cycles this ends after as many rounds as there are nodes.
    for _ in 0..graph.nodes.len() {
        for &(from, to) in &forward {
            column[to] = column[to].max(column[from] + 1);
        }
    }
    let mut columns = vec![Vec::new(); column.iter().max().map_or(0, |last| last + 1)];
    for (node, &place) in column.iter().enumerate() {
        columns[place].push(node);
    }
    for _ in 0..4 {
        untangle(&mut columns, &forward);
    }
    columns
}

/// The arcs, turned round where they would close a cycle.
fn without_cycles(graph: &Graph) -> Vec<(usize, usize)> {
    let mut kept: Vec<(usize, usize)> = Vec::new();
    for arc in &graph.arcs {
        if arc.from == arc.to {
            continue;
        }
        let closes = reaches(&kept, arc.to, arc.from);
        kept.push(if closes { (arc.to, arc.from) } else { (arc.from, arc.to) });
    }
    kept
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
        let columns = columns(&graph);
        let column = |node| columns.iter().position(|column| column.contains(&node)).unwrap();
        // yes, the pipe, head.
        assert!(column(0) < column(3) && column(3) < column(1), "{columns:?}");
        assert_eq!(columns.iter().map(Vec::len).sum::<usize>(), 4);
    }

    #[test]
    fn nothing_is_no_columns() {
        assert!(columns(&Graph::default()).is_empty());
    }
}
