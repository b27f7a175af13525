//! Means with confidence, and fronts.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean and half of its 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mean {
    pub value: f64,
    pub half: f64,
}

/// By Student's t: the samples are of independent seeds.
pub fn mean(samples: &[f64]) -> Mean {
    let count = samples.len() as f64;
    let value = samples.iter().sum::<f64>() / count.max(1.0);
    if samples.len() < 2 {
        return Mean { value, half: f64::INFINITY };
    }
    let variance = samples.iter().map(|sample| (sample - value).powi(2)).sum::<f64>() / (count - 1.0);
    let t = StudentsT::new(0.0, 1.0, count - 1.0).map_or(f64::INFINITY, |student| student.inverse_cdf(0.975));
    Mean { value, half: t * (variance / count).sqrt() }
}

/// Whether the first is at least as good as the second in both goals and better in one: less time, more availability.
pub fn dominates(first: (f64, f64), second: (f64, f64)) -> bool {
    first.0 <= second.0 && first.1 >= second.1 && first != second
}

/// Those that nobody dominates.
pub fn front(points: &[(f64, f64)]) -> Vec<bool> {
    points.iter().map(|point| !points.iter().any(|other| dominates(*other, *point))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confidence_interval_is_the_textbooks() {
        // t(0.975, 4) = 2.776; standard deviation of 1 to 5 is 1.5811.
        let found = mean(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(found.value, 3.0);
        assert!((found.half - 2.776 * 1.5811 / 5f64.sqrt()).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn the_front_is_what_nobody_dominates() {
        assert_eq!(front(&[(1.0, 0.9), (2.0, 0.95), (2.0, 0.9), (1.0, 0.9)]), [true, true, false, true]);
    }
}
