//! Closed forms that the simulator is held against.

/// Mean wait in an M/M/1 queue, in seconds.
pub fn mm1_wait(arrivals: f64, service: f64) -> f64 {
    let load = arrivals * service;
    load * service / (1.0 - load)
}

/// Hit ratio of LRU under independent references: H. Che, Y. Tung, Z. Wang, *Hierarchical Web Caching Systems*, 2002.
/// `rates`: of the objects, all of one size; `room`: objects that fit.
pub fn che_lru(rates: &[f64], room: f64) -> f64 {
    let kept = |time: f64| rates.iter().map(|rate| 1.0 - (-rate * time).exp()).sum::<f64>();
    let (mut low, mut high) = (0.0, 1.0);
    while kept(high) < room {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        *(if kept(middle) < room { &mut low } else { &mut high }) = middle;
    }
    let total: f64 = rates.iter().sum();
    rates.iter().map(|rate| rate * (1.0 - (-rate * low).exp())).sum::<f64>() / total
}

/// The probability that at least `needed` of `count` nodes are up, each with probability `up`.
pub fn at_least(needed: usize, count: usize, up: f64) -> f64 {
    let choose = |k: usize| (0..k).map(|i| (count - i) as f64 / (i + 1) as f64).product::<f64>();
    (needed..=count).map(|k| choose(k) * up.powi(k as i32) * (1.0 - up).powi((count - k) as i32)).sum()
}

/// Zipf's rates, the sum being 1.
pub fn zipf(objects: usize, exponent: f64) -> Vec<f64> {
    let rates: Vec<f64> = (1..=objects).map(|rank| (rank as f64).powf(-exponent)).collect();
    let total: f64 = rates.iter().sum();
    rates.into_iter().map(|rate| rate / total).collect()
}
