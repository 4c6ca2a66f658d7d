//! Durations and sizes as people write them: `500ms`, `30s`, `5m`, `6h`, `90d`; `64KiB`, `64MiB`, `1GiB`.
//!
//! A number without a unit is refused: nobody should have to guess it.

const DURATIONS: &[(&str, u64)] = &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
const SIZES: &[(&str, u64)] = &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// Reads a duration, in ms: a whole number and one of ms, s, m, h, d.
pub fn duration_ms(text: &str) -> Result<i64, String> {
    scaled(text, DURATIONS)
        .and_then(|ms| i64::try_from(ms).ok())
        .ok_or_else(|| "must be a whole number with a unit: ms, s, m, h or d, such as \"30s\"".to_owned())
}

/// Reads a size in bytes: a whole number and one of B, KiB, MiB, GiB.
pub fn size_bytes(text: &str) -> Result<u64, String> {
    scaled(text, SIZES)
        .ok_or_else(|| "must be a whole number with a unit: B, KiB, MiB or GiB, such as \"64MiB\"".to_owned())
}

fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit.trim_start())?.1;
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_need_a_whole_number_and_a_known_unit() {
        for (text, ms) in
            [("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("6h", 21_600_000), ("90d", 7_776_000_000), ("0s", 0)]
        {
            assert_eq!(duration_ms(text), Ok(ms), "{text}");
        }
        for text in ["", "5", "s", "-1s", "1.5h", "5 weeks", "5S", "99999999999999999999s", "18446744073709551615d"] {
            assert!(duration_ms(text).is_err(), "{text}");
        }
        assert_eq!(size_bytes("64MiB"), Ok(64 << 20));
        assert_eq!(size_bytes("1 GiB"), Ok(1 << 30));
        for text in ["64", "64MB", "64mib", "MiB", "-1KiB", "99999999999GiB"] {
            assert!(size_bytes(text).is_err(), "{text}");
        }
    }
}
