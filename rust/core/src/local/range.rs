//! Counts of ranges of ordered values, by weighted least squares over a tree whose leaves are the values.
//!
//! Of the people who reported on a level, an estimated share is under each of its nodes. The shares of all nodes, such
//! that those of children sum to their parent's and that of the root is 1, follow in two passes (Hay et al. 2010):
//! upwards, each node's own share is averaged with the sum of its children's, weighted by precision; downwards, the
//! difference between a parent and the sum of its children is distributed by variance.
//!
//! Variances are in multiples of a bound on that of a report. The variance of a sum of nodes of a level is at most what
//! it would be if they were independent (docs/proofs/hierarchical_ranges.md).
//!
//! # The variance of a range
//!
//! All nodes of a level have full subtrees, except the last one, which may lack leaves that are not values. So there are
//! two kinds of nodes on a level, and nothing else of the tree is needed for variances. A range of leaves gives every
//! node a weight: 1 if all leaves under it are in the range, and 0 if none is, save for the two nodes on each level
//! above the ends of the range. The variance then follows from a few nodes of each level, without a pass over the tree.
//!
//! Sources: Hay, Rastogi, Miklau and Suciu 2010, "Boosting the accuracy of differentially private histograms through
//! consistency", section 4.2; here with levels of different accuracy.
//!
//! Nothing here is private: it is computed from reports that their senders randomised.

use core::ops::Range;

use crate::error::Error;

/// The weight of a level without reports, which carries no information.
const NOBODY: f64 = 1e-9;

/// How many people have each value and each range of values, estimated from their reports.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeEstimate {
    /// The number of people: of reports, unless the senders are a sample of them.
    pub n: u64,
    /// The share of each value.
    shares: Vec<f64>,
    tree: Tree,
}

impl RangeEstimate {
    /// The estimate for all `people`, if the senders are a random sample of them. Shares stay as they are: their bound
    /// is for people drawn at random, and without replacement the variance is smaller.
    #[must_use]
    pub fn of_all_people(self, people: u64) -> Self {
        Self { n: people, ..self }
    }

    /// The estimate from the least-squares shares of all values in a tree of this `shape`, with the number of reports on
    /// each level, the leaves first.
    ///
    /// # Errors
    /// [`Error::Data`] unless there are as many of them as the shape has values and levels.
    pub fn from_shares(shape: TreeShape, reports: &[u64], shares: Vec<f64>, n: u64) -> Result<Self, Error> {
        if shares.len() != shape.k || reports.len() != shape.levels().len() {
            return Err(Error::data("shares", "must be those of all values, and reports those of all levels"));
        }
        Ok(Self { n, shares, tree: Tree::new(shape, reports) })
    }

    /// The least-squares estimate from the counts of nodes, and the number of reports, on each level of a tree of this
    /// `shape`, the leaves first.
    pub(crate) fn new(
        shape: TreeShape,
        n: u64,
        levels: impl Iterator<Item = Result<(Vec<f64>, u64), Error>>,
    ) -> Result<Self, Error> {
        let (mut counts, mut reports) = (vec![], vec![]); // at most 20 levels
        for level in levels {
            let (counts_of, reports_on) = level?;
            counts.push(counts_of);
            reports.push(reports_on);
        }
        let tree = Tree::new(shape, &reports);
        let shares = tree.shares(counts);
        Ok(Self { n, shares, tree })
    }

    /// The number of values.
    #[must_use]
    pub fn k(&self) -> usize {
        self.shares.len()
    }

    /// The shape of the tree.
    #[must_use]
    pub fn shape(&self) -> TreeShape {
        self.tree.shape
    }

    /// The number of reports on each level, the leaves first.
    #[must_use]
    pub fn reports(&self) -> impl ExactSizeIterator<Item = u64> {
        self.tree.levels.iter().map(|level| level.reports)
    }

    /// The share of each value.
    #[must_use]
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// Unbiased estimates for each value. They sum to n; those of rare values may be negative.
    #[must_use]
    pub fn counts(&self) -> impl ExactSizeIterator<Item = f64> {
        self.shares.iter().map(|share| share * self.n as f64)
    }

    /// How many people have a value from `first` to `last`, and an upper bound on the standard error.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless first <= last < k.
    pub fn range(&self, first: usize, last: usize) -> Result<(f64, f64), Error> {
        let k = self.k();
        if first >= k {
            return Err(Error::parameter("first", first, Self::allowed(0, k)));
        }
        if !(first..k).contains(&last) {
            return Err(Error::parameter("last", last, Self::allowed(first, k)));
        }
        let share: f64 = self.shares[first..=last].iter().sum();
        let people = self.n as f64;
        Ok((share * people, people * self.tree.variance(first, last).sqrt()))
    }

    /// The values that are allowed from `least` on.
    #[must_use]
    pub fn allowed(least: usize, k: usize) -> String {
        format!("an integer from {least} to {}", k - 1)
    }

    /// The smallest value that a share `q` of all people do not exceed: the first one at which the estimated cumulative
    /// share reaches `q`, or the last value if it never does.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless 0 <= q <= 1.
    pub fn quantile(&self, q: f64) -> Result<usize, Error> {
        if !(0.0..=1.0).contains(&q) {
            return Err(Error::parameter("q", format!("{q:?}"), "between 0 and 1"));
        }
        let mut cumulative = 0.0;
        let reached = self.shares.iter().position(|share| {
            cumulative += share;
            cumulative >= q
        });
        Ok(reached.unwrap_or(self.k() - 1))
    }
}

/// A tree over k values, whose nodes have `branching` children each; the last node of a level may have fewer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeShape {
    k: usize,
    branching: usize,
    /// A bound on the standard deviation of a report on a node's share.
    spread: f64,
}

impl TreeShape {
    /// The tree over `k` >= 2 values, whose nodes have `branching` >= 2 children, with a bound on the standard deviation
    /// of a report.
    ///
    /// # Errors
    /// [`Error::Data`] for fewer.
    pub fn new(k: usize, branching: usize, spread: f64) -> Result<Self, Error> {
        if k < 2 || branching < 2 {
            return Err(Error::data("k and branching", "must be at least 2"));
        }
        Ok(Self { k, branching, spread })
    }

    /// The number of values.
    #[must_use]
    pub fn k(self) -> usize {
        self.k
    }

    /// The number of children of a node.
    #[must_use]
    pub fn branching(self) -> usize {
        self.branching
    }

    /// A bound on the standard deviation of a report.
    #[must_use]
    pub fn spread(self) -> f64 {
        self.spread
    }

    /// The number of nodes on each level below the root, the leaves first.
    fn levels(self) -> Vec<usize> {
        let mut nodes = vec![self.k]; // at most 64 levels
        while nodes[nodes.len() - 1] > self.branching {
            nodes.push(nodes[nodes.len() - 1].div_ceil(self.branching));
        }
        nodes
    }
}

/// What least squares knows of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Node {
    /// The variance of its share after the pass upwards.
    variance: f64,
    /// The weight of its own share in the average with the sum of its children's.
    own: f64,
    /// The variance that a share with the factor 1 adds in its whole subtree.
    below: f64,
}

impl Node {
    /// A node on a level with `n` reports, from the sums over its children of their variances and of what is below.
    fn new(n: f64, children: Option<(f64, f64)>) -> Self {
        let Some((variances, below)) = children else {
            return Self { variance: 1.0 / n, own: 1.0, below: 1.0 / n };
        };
        let precision = n + 1.0 / variances;
        let own = n / precision;
        Self { variance: 1.0 / precision, own, below: own * own / n + (1.0 - own) * (1.0 - own) * below }
    }
}

/// A level below the root.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Level {
    reports: u64,
    nodes: usize,
    /// A node with a full subtree.
    full: Node,
    /// The last node.
    last: Node,
}

impl Level {
    fn n(&self) -> f64 {
        (self.reports as f64).max(NOBODY)
    }

    fn node(&self, index: usize) -> Node {
        if index + 1 == self.nodes { self.last } else { self.full }
    }

    /// The sum over some nodes, of which `whole` are not the last one.
    fn sum(&self, whole: usize, with_last: bool, of: impl Fn(Node) -> f64) -> f64 {
        whole as f64 * of(self.full) + if with_last { of(self.last) } else { 0.0 }
    }
}

/// The levels below the root, the leaves first.
#[derive(Clone, Debug, PartialEq)]
struct Tree {
    shape: TreeShape,
    levels: Vec<Level>,
}

/// The nodes above the ends of a range on a level, and their weights.
#[derive(Clone, Copy)]
struct Ends {
    first: (usize, f64),
    last: (usize, f64),
}

/// Nodes of a family that are alike: their weight, and how many they are. A single one has a number.
#[derive(Clone, Copy)]
struct Group {
    weight: f64,
    node: Node,
    many: usize,
    index: Option<usize>,
}

impl Tree {
    fn new(shape: TreeShape, reports: &[u64]) -> Self {
        let mut levels: Vec<Level> = vec![];
        for (nodes, &reports) in shape.levels().into_iter().zip(reports) {
            let mut level = Level { reports, nodes, full: Node::new(1.0, None), last: Node::new(1.0, None) };
            let node = |whole, with_last| {
                let sums = levels.last().map(|children| {
                    let of = |of: fn(Node) -> f64| children.sum(whole, with_last, of);
                    (of(|child| child.variance), of(|child| child.below))
                });
                Node::new(level.n(), sums)
            };
            let full = node(shape.branching, false);
            let children_of_last = levels.last().map_or(0, |children| children.nodes - (nodes - 1) * shape.branching);
            let last = node(children_of_last.saturating_sub(1), true);
            (level.full, level.last) = (full, last);
            levels.push(level);
        }
        Self { shape, levels }
    }

    /// The children of a node of the level above this one, or of the root.
    fn family(&self, level: usize, parent: usize) -> Range<usize> {
        let start = parent * self.shape.branching;
        start..(start + self.shape.branching).min(self.levels[level].nodes)
    }

    /// The shares of all leaves from the counts of the nodes of all levels.
    fn shares(&self, mut counts: Vec<Vec<f64>>) -> Vec<f64> {
        for (i, level) in self.levels.iter().enumerate() {
            let (below, own) = counts.split_at_mut(i);
            for (index, share) in own[0].iter_mut().enumerate() {
                let Node { own, .. } = level.node(index);
                let of_children = below.last().map_or(0.0, |below| below[self.family(i - 1, index)].iter().sum());
                *share = own * (*share / level.n()) + (1.0 - own) * of_children;
            }
        }
        for (i, level) in self.levels.iter().enumerate().rev() {
            let (own, above) = counts.split_at_mut(i + 1);
            for (parent, &share) in above.first().map_or(&[1.0][..], |above| above).iter().enumerate() {
                let family = self.family(i, parent);
                let with_last = family.end == level.nodes;
                let variances = level.sum(family.len() - usize::from(with_last), with_last, |node| node.variance);
                let lacking = share - own[i][family.clone()].iter().sum::<f64>();
                for (index, share) in family.clone().zip(&mut own[i][family]) {
                    *share += level.node(index).variance / variances * lacking;
                }
            }
        }
        counts.swap_remove(0)
    }

    /// An upper bound on the variance of the share of the leaves from `first` to `last`.
    fn variance(&self, first: usize, last: usize) -> f64 {
        let mut ends = vec![Ends { first: (first, 1.0), last: (last, 1.0) }]; // one for each level
        for i in 0..self.levels.len() - 1 {
            let above = |end: usize| {
                let parent = end / self.shape.branching;
                (parent, self.weight(i, parent, &ends[i]))
            };
            ends.push(Ends { first: above(ends[i].first.0), last: above(ends[i].last.0) });
        }
        let top = self.levels.len() - 1;
        let root = self.weight(top, 0, &ends[top]);
        self.shape.spread * self.shape.spread * self.added(&ends, 0, root, 0.0)
    }

    /// The weight of a node, of which a level has the children: their mean by variance.
    fn weight(&self, level: usize, parent: usize, ends: &Ends) -> f64 {
        let groups = self.groups(level, parent, ends);
        let sum = |of: fn(Group) -> f64| {
            groups.iter().map(|&group| group.many as f64 * group.node.variance * of(group)).sum::<f64>()
        };
        sum(|group| group.weight) / sum(|_| 1.0)
    }

    /// What the children of a node, whose weight is `above`, and all that is below them add to the variance, where
    /// `ends` are those of the levels from the leaves to the children. Each child inherits a factor.
    fn added(&self, ends: &[Ends], parent: usize, above: f64, inherited: f64) -> f64 {
        let i = ends.len() - 1;
        let mut total = 0.0;
        for Group { weight, node, many, index } in self.groups(i, parent, &ends[i]) {
            let factor = weight - above + inherited;
            total += match index.filter(|&index| i > 0 && (index == ends[i].first.0 || index == ends[i].last.0)) {
                Some(index) => {
                    let own = factor * node.own;
                    own * own / self.levels[i].n() + self.added(&ends[..i], index, weight, factor - own)
                }
                None => many as f64 * factor * factor * node.below,
            };
        }
        total
    }

    /// The children of a node, alike ones together: those above the ends, the last node of the level, those within the
    /// range, and those outside.
    fn groups(&self, level: usize, parent: usize, ends: &Ends) -> [Group; 5] {
        let Level { nodes, full, .. } = self.levels[level];
        let (family, (first, of_first), (end, of_end)) = (self.family(level, parent), ends.first, ends.last);
        let mut singles = 0;
        let mut single = |index: usize, weight: f64, is_new: bool| {
            let many = usize::from(is_new && family.contains(&index));
            singles += many;
            Group { weight, node: self.levels[level].node(index), many, index: (many > 0).then_some(index) }
        };
        let (one, two) = (single(first, of_first, true), single(end, of_end, end != first));
        // The last node is above the end of the range, or outside.
        let three = single(nodes - 1, 0.0, nodes - 1 != end);
        let inside = end.min(family.end).saturating_sub((first + 1).max(family.start));
        let alike = |weight, many| Group { weight, node: full, many, index: None };
        [one, two, three, alike(1.0, inside), alike(0.0, family.len() - singles - inside)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [(usize, usize); 9] = [(2, 2), (2, 4), (5, 2), (13, 2), (16, 4), (17, 4), (11, 8), (40, 4), (33, 16)];

    /// A tree with counts, and its equations: the nodes as ranges of leaves, each with its own share and its precision.
    fn tree(k: usize, branching: usize) -> (RangeEstimate, Vec<(Range<usize>, f64, f64)>) {
        let shape = TreeShape::new(k, branching, 1.7).unwrap();
        let (mut equations, mut levels, mut state, mut leaves) = (vec![], vec![], k as u64, 1);
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for nodes in shape.levels() {
            let n = 50 + draw(450);
            let counts: Vec<f64> = (0..nodes).map(|_| draw(2 * n) as f64 / nodes as f64 - 7.0).collect();
            for (node, count) in counts.iter().enumerate() {
                equations.push((node * leaves..k.min((node + 1) * leaves), count / n as f64, n as f64));
            }
            levels.push(Ok((counts, n)));
            leaves *= branching;
        }
        (RangeEstimate::new(shape, 1000, levels.into_iter()).unwrap(), equations)
    }

    /// Solves linear equations by elimination with pivots.
    fn solved(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
        for i in 0..right.len() {
            let pivot = (i..right.len()).max_by(|&a, &b| matrix[a][i].abs().total_cmp(&matrix[b][i].abs())).unwrap();
            matrix.swap(i, pivot);
            right.swap(i, pivot);
            for j in (0..right.len()).filter(|&j| j != i) {
                let factor = matrix[j][i] / matrix[i][i];
                let row = matrix[i].clone();
                matrix[j].iter_mut().zip(row).for_each(|(to, from)| *to -= factor * from);
                right[j] -= factor * right[i];
            }
        }
        right.iter().zip(0..).map(|(right, i): (_, usize)| right / matrix[i][i]).collect()
    }

    /// The normal equations, with a Lagrange multiplier for the sum.
    fn normal(k: usize, equations: &[(Range<usize>, f64, f64)]) -> Vec<Vec<f64>> {
        let mut matrix = vec![vec![0.0; k + 1]; k + 1];
        for (leaves, _, precision) in equations {
            for (i, j) in leaves.clone().flat_map(|i| leaves.clone().map(move |j| (i, j))) {
                matrix[i][j] += precision;
            }
        }
        matrix[k][..k].fill(1.0);
        matrix[..k].iter_mut().for_each(|row| row[k] = 1.0);
        matrix
    }

    #[test]
    fn two_passes_solve_the_normal_equations() {
        for (k, branching) in SHAPES {
            let (estimate, equations) = tree(k, branching);
            let mut right = vec![0.0; k + 1];
            for (leaves, share, precision) in &equations {
                leaves.clone().for_each(|i| right[i] += precision * share);
            }
            right[k] = 1.0;
            let expected = solved(normal(k, &equations), right);
            for (found, expected) in estimate.shares().iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-10, "{k} {branching}: {found} {expected}");
            }
        }
    }

    #[test]
    fn variances_are_those_of_the_linear_map() {
        for (k, branching) in SHAPES {
            let (estimate, equations) = tree(k, branching);
            for (first, last) in (0..k).flat_map(|first| (first..k).map(move |last| (first, last))) {
                let query: Vec<f64> =
                    (0..=k).map(|i| f64::from(u8::from((first..=last).contains(&i) && i < k))).collect();
                let dual = solved(normal(k, &equations), query);
                let of_own = equations.iter().map(|(leaves, _, precision)| {
                    let factor = precision * dual[leaves.clone()].iter().sum::<f64>();
                    factor * factor / precision
                });
                let expected = 1.7 * 1.7 * of_own.sum::<f64>();
                let found = estimate.tree.variance(first, last);
                assert!((found - expected).abs() < 1e-9 * expected + 1e-14, "{k} {first} {last}: {found} {expected}");
            }
        }
    }

    #[test]
    fn ranges_add_up_to_their_ends() {
        let (estimate, _) = tree(40, 4);
        let counts: Vec<f64> = estimate.counts().collect();
        assert!((counts.iter().sum::<f64>() - 1000.0).abs() < 1e-9);
        let (count, error) = estimate.range(7, 21).unwrap();
        assert!((count - counts[7..=21].iter().sum::<f64>()).abs() < 1e-9 && error > 0.0);
        let (whole, of_whole) = estimate.range(0, 39).unwrap();
        assert!((whole - 1000.0).abs() < 1e-9 && of_whole < 1e-6);
        let of_all = estimate.clone().of_all_people(2000);
        assert_eq!(of_all.range(7, 21), Ok((2.0 * count, 2.0 * error)));
        let message = |first, last| estimate.range(first, last).unwrap_err().to_string();
        assert_eq!(message(40, 41), "first must be an integer from 0 to 39, got 40");
        assert_eq!(message(4, 3), "last must be an integer from 4 to 39, got 3");
    }

    #[test]
    fn quantiles_are_where_cumulative_shares_reach_them() {
        let shape = TreeShape::new(4, 2, 1.0).unwrap();
        let of = |shares: [f64; 4]| RangeEstimate::from_shares(shape, &[5, 5], shares.to_vec(), 10).unwrap();
        let estimate = of([0.25, 0.5, -0.25, 0.5]);
        for (q, value) in [(0.0, 0), (0.25, 0), (0.26, 1), (0.5, 1), (0.75, 1), (0.76, 3), (1.0, 3)] {
            assert_eq!(estimate.quantile(q), Ok(value), "{q}");
        }
        assert_eq!(of([0.25, 0.25, 0.25, 0.2]).quantile(1.0), Ok(3));
        assert_eq!(of([-0.1, 0.3, 0.3, 0.5]).quantile(0.0), Ok(1));
        for q in [-0.1, 1.1, f64::NAN] {
            let message = format!("q must be between 0 and 1, got {q:?}");
            assert_eq!(estimate.quantile(q).unwrap_err().to_string(), message);
        }
    }
}
