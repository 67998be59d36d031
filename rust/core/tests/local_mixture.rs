//! Generalised randomised response, enumerated: every coin, every index word, exact counts; and word by word against a
//! slow copy of its definition.

use dpnoise_core::local::{GeneralizedRandomizedResponse, Protocol, Values};
use dpnoise_core::rng::{ScriptedRng, SeededRng};
use rand_core::TryRng;

/// Values are randomised in chunks of this many.
const CHUNK: usize = 1 << 10;

/// Reports on the values made of scripted bytes, or `None` unless it takes all of them and no more.
type Perturb = fn(&GeneralizedRandomizedResponse, &[i64], &[u8]) -> Option<Vec<u8>>;

fn perturb(response: &GeneralizedRandomizedResponse, values: &[i64], script: &[u8]) -> Option<Vec<u8>> {
    let mut rng = ScriptedRng::new(script);
    let mut out = vec![0; values.len() * Protocol::from(*response).report_bytes()];
    Protocol::from(*response).perturb_with(Values::Integers(values), &mut out, &mut rng).ok()?;
    (rng.remaining() == 0).then_some(out)
}

/// The definition, with room for faults: whether a coin keeps the value, and which index words are rejected.
fn defined(
    response: &GeneralizedRandomizedResponse,
    values: &[i64],
    script: &[u8],
    keeps: impl Fn(u64, u64) -> bool,
    rejects: impl Fn(u128, u128) -> bool,
) -> Option<Vec<u8>> {
    let mixture = response.mixture();
    let k = u128::from(mixture.k());
    let coin_bytes = [2, 4, 8].into_iter().find(|&bytes| 8 * bytes >= mixture.planes() as usize)?;
    let index_bytes = if k <= 256 { 2 } else { 4 };
    let mut rest = script;
    let mut word = |bytes: usize| {
        let (word, after) = rest.split_at_checked(bytes)?;
        rest = after;
        Some(word.iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte)))
    };
    let mut out = vec![];
    for values in values.chunks(CHUNK) {
        let coins: Vec<u64> = values.iter().map(|_| word(coin_bytes)).collect::<Option<_>>()?;
        let indices: Vec<u64> = values.iter().map(|_| word(index_bytes)).collect::<Option<_>>()?;
        for ((&value, coin), index) in values.iter().zip(coins).zip(indices) {
            let range = 1u128 << (8 * index_bytes);
            let mut product = u128::from(index) * k;
            while rejects(product % range, range % k) {
                product = u128::from(word(index_bytes)?) * k;
            }
            let coin = coin >> (8 * coin_bytes - mixture.planes() as usize);
            let report = if keeps(coin, mixture.keep()) { value as u64 } else { (product / range) as u64 };
            out.extend(&report.to_le_bytes()[..Protocol::from(*response).report_bytes()]);
        }
    }
    rest.is_empty().then_some(out)
}

fn without_fault(response: &GeneralizedRandomizedResponse, values: &[i64], script: &[u8]) -> Option<Vec<u8>> {
    defined(response, values, script, |coin, keep| coin < keep, |low, below| low < below)
}

/// A script of 16-bit words for `coins` and `indices`, in which rejected index words are replaced by one that gives 0.
fn script(k: u32, coins: &[u16], indices: &[u16]) -> Vec<u8> {
    let zero = (0..u16::MAX).find(|&word| !rejected(k, word)).unwrap();
    let chunk = |(coins, indices): (&[u16], &[u16])| {
        let replacements = indices.iter().filter(|&&word| rejected(k, word)).map(|_| &zero);
        coins.iter().chain(indices).chain(replacements).flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()
    };
    coins.chunks(CHUNK).zip(indices.chunks(CHUNK)).flat_map(chunk).collect()
}

fn rejected(k: u32, word: u16) -> bool {
    u32::from(word) * k % (1 << 16) < (1 << 16) % k
}

/// Whether all 2^16 coins keep the value exactly keep / 2^planes of the time, and otherwise give the uniform one.
fn coins_are_exact(perturb: Perturb, response: &GeneralizedRandomizedResponse) -> bool {
    let (k, mixture) = (response.mixture().k(), response.mixture());
    let all: Vec<u16> = (0..=u16::MAX).collect();
    let kept = mixture.keep() << (16 - mixture.planes());
    let values = (0..k).step_by(k as usize / 16 + 1).chain([k - 1]);
    values.flat_map(|value| [(value, (value + 1) % k), (value, k - 1 - value)]).all(|(value, other)| {
        // The middle of the words that give `other`.
        let index = ((2 * other + 1) * (1 << 15) / k) as u16;
        let script = script(k, &all, &vec![index; all.len()]);
        let Some(reports) = perturb(response, &vec![i64::from(value); all.len()], &script) else { return false };
        let count = |wanted: u32| reports.iter().filter(|&&report| u32::from(report) == wanted).count() as u64;
        if value == other { count(value) == 1 << 16 } else { count(value) == kept && count(other) == (1 << 16) - kept }
    })
}

/// Whether the 2^16 index words give every value equally often, but for those that are rejected.
fn indices_are_exact(perturb: Perturb, response: &GeneralizedRandomizedResponse) -> bool {
    let k = response.mixture().k();
    let all: Vec<u16> = (0..=u16::MAX).collect();
    let script = script(k, &vec![u16::MAX; all.len()], &all);
    let Some(reports) = perturb(response, &vec![1; all.len()], &script) else { return false };
    let mut counts = vec![0; k as usize];
    for &report in &reports {
        counts[report as usize] += 1;
    }
    counts[0] -= (1 << 16) % k; // the replacements
    counts.iter().all(|&count| count == (1 << 16) / k)
}

/// Those with 16-bit words for both, over small k and many probabilities of keeping.
fn small() -> Vec<GeneralizedRandomizedResponse> {
    let pairs = [2, 3, 4, 5, 7, 8, 15].into_iter().flat_map(|k| [0.05, 0.3, 1.0, 3f64.ln(), 4.0].map(|e| (k, e)));
    let all = pairs.chain([(100, 3.0), (255, 4.0), (256, 5.0)]);
    let all = all.map(|(k, epsilon)| GeneralizedRandomizedResponse::new(k, epsilon).unwrap());
    all.filter(|response| response.mixture().planes() <= 16).collect()
}

#[test]
fn every_coin_and_every_index_word_counts_exactly() {
    let small = small();
    assert!(small.len() > 30, "{}", small.len());
    for response in small {
        for perturb in [perturb, without_fault] {
            assert!(coins_are_exact(perturb, &response), "{}", Protocol::from(response).to_json());
            assert!(indices_are_exact(perturb, &response), "{}", Protocol::from(response).to_json());
        }
    }
}

/// The positive control: plausible faults do not pass.
#[test]
fn planted_faults_are_caught() {
    let response = GeneralizedRandomizedResponse::new(7, 1.0).unwrap();
    let at_the_threshold: Perturb = |response, values, script| {
        defined(response, values, script, |coin, keep| coin <= keep, |low, below| low < below)
    };
    let off_by_one: Perturb = |response, values, script| {
        defined(response, values, script, |coin, keep| coin < keep - 1, |low, below| low < below)
    };
    assert!(!coins_are_exact(at_the_threshold, &response) && !coins_are_exact(off_by_one, &response));
    let rejects_too_many: Perturb = |response, values, script| {
        defined(response, values, script, |coin, keep| coin < keep, |low, below| low <= below)
    };
    assert!(!indices_are_exact(rejects_too_many, &response));
    // Without rejection nothing is replaced: the bias must show without the replacements in the script, too.
    let biased: Perturb = |response, values, script| {
        let words = values.len() / CHUNK * CHUNK * 4;
        let of_chunk = |chunk: usize| {
            let before = (0..chunk * CHUNK).filter(|&word| rejected(7, word as u16)).count();
            &script[chunk * 4 * CHUNK + 2 * before..][..4 * CHUNK]
        };
        let script: Vec<u8> = (0..words / (4 * CHUNK)).flat_map(of_chunk).copied().collect();
        defined(response, values, &script, |coin, keep| coin < keep, |_, _| false)
    };
    assert!(!indices_are_exact(biased, &response));
}

/// All sizes of words and of reports, rejected words among them.
#[test]
fn the_code_does_what_is_defined() {
    let mut sizes = vec![];
    let mut replaced = 0;
    for (k, epsilon) in [(2, 1.0), (255, 4.0), (15, 1e-4), (3, 25.0), (200, 20.0), (1000, 5.0), (1 << 17, 1.0)]
        .into_iter()
        .chain([(70_001, 20.0), ((1 << 24) - 1, 0.2), (1 << 24, 32.0), (16_773_117, 12.0)])
    {
        let response = GeneralizedRandomizedResponse::new(k, epsilon).unwrap();
        let values: Vec<i64> = (0..5000).map(|i| i * 7919 % k as i64).collect();
        let mut stream = vec![0; 13 * values.len()];
        SeededRng::new(k).unwrap().try_fill_bytes(&mut stream).unwrap();
        let mut rng = ScriptedRng::new(stream.clone());
        let mut reports = vec![0; values.len() * Protocol::from(response).report_bytes()];
        Protocol::from(response).perturb_with(Values::Integers(&values), &mut reports, &mut rng).unwrap();
        let used = stream.len() - rng.remaining();
        assert_eq!(without_fault(&response, &values, &stream[..used]), Some(reports), "{k} {epsilon}");
        let planes = response.mixture().planes();
        let bytes = [2, 4, 8].into_iter().find(|bytes| 8 * bytes >= planes as usize).unwrap();
        let least = values.len() * (bytes + if k <= 256 { 2 } else { 4 });
        replaced += used - least;
        sizes.push((bytes, if k <= 256 { 2 } else { 4 }, Protocol::from(response).report_bytes()));
    }
    for size in [(2, 2, 1), (4, 2, 1), (8, 2, 1), (2, 4, 2), (4, 4, 3), (8, 4, 3)] {
        assert!(sizes.contains(&size), "{size:?} of {sizes:?}");
    }
    assert!(replaced > 0, "rejected words are met");
}
