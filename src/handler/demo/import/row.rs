//! One customer, as read from a row and checked. A row that cannot become a customer is told with the reason.

use super::file::FileRow;

/// A customer that may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Customer {
    pub number: String,
    pub name: String,
    pub email: String,
    pub city: String,
    pub country: String,
    pub credit_limit_cents: i64,
    /// A date such as 2019-03-14.
    pub since: Option<String>,
}

impl Customer {
    /// Reads a row; the error is half a sentence that names the column.
    pub fn read(row: &FileRow) -> Result<Self, String> {
        if let Err((found, wanted)) = row.fits {
            return Err(format!("the row has {found} fields, the header has {wanted}"));
        }
        let field = |column: usize| row.field(column).ok_or_else(|| "the row is not in UTF-8".to_owned());
        let [number, name, email] = [field(0)?, field(1)?, field(2)?];
        if number.is_empty() || number.chars().count() > 40 {
            return Err("number must have 1 to 40 characters".into());
        }
        if name.is_empty() {
            return Err("name is empty".into());
        }
        if !is_email(email) {
            return Err(format!("email `{email}` is no address"));
        }
        if [number, name, email].iter().any(|text| text.contains('\0')) {
            return Err("the row contains a NUL character".into());
        }
        let limit = field(5)?;
        let since = field(6)?;
        if !since.is_empty() && since.parse::<jiff::civil::Date>().is_err() {
            return Err(format!("since `{since}` is no date such as 2019-03-14"));
        }
        Ok(Self {
            number: number.into(),
            name: name.into(),
            email: email.into(),
            city: field(3)?.replace('\0', ""),
            country: field(4)?.replace('\0', ""),
            credit_limit_cents: cents(limit).ok_or_else(|| format!("credit_limit `{limit}` is no amount"))?,
            since: (!since.is_empty()).then(|| since.to_owned()),
        })
    }
}

/// Whether a text has the form of an address: one @, something before it, a domain with a dot after it, no spaces.
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else { return false };
    let labels: Vec<&str> = domain.split('.').collect();
    !local.is_empty()
        && !domain.contains('@')
        && labels.len() > 1
        && labels.iter().all(|label| !label.is_empty())
        && !text.contains(char::is_whitespace)
}

/// An amount such as `1250`, `1250.5` or `1250.50` in cents; nothing is 0.
fn cents(text: &str) -> Option<i64> {
    if text.is_empty() {
        return Some(0);
    }
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 2 {
        return None;
    }
    let part: i64 = format!("{part:0<2}").parse().ok()?;
    whole.parse::<i64>().ok()?.checked_mul(100)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::super::file::{look, read};
    use super::*;

    fn reasons(rows: &str) -> Vec<String> {
        let text = format!("number,name,email,city,country,credit_limit,since\n{rows}");
        let place = look(text.as_bytes()).unwrap().position;
        let rows = read(text.as_bytes(), &place, 100).unwrap().rows;
        rows.iter().map(|row| Customer::read(row).err().unwrap_or_default()).collect()
    }

    #[test]
    fn a_row_that_is_no_customer_is_told_with_the_column_and_the_reason() {
        let rows = "1,A,a@b.example,X,DE,10,2020-01-31\n\
            ,A,a@b.example,,,,\n2,,a@b.example,,,,\n3,A,a@b,,,,\n4,A,a b@c.example,,,,\n5,A,a@b.example,,,-1,\n\
            6,A,a@b.example,,,1.234,\n7,A,a@b.example,,,,2020-02-30\n8,A\n";
        assert_eq!(
            reasons(rows),
            [
                "",
                "number must have 1 to 40 characters",
                "name is empty",
                "email `a@b` is no address",
                "email `a b@c.example` is no address",
                "credit_limit `-1` is no amount",
                "credit_limit `1.234` is no amount",
                "since `2020-02-30` is no date such as 2019-03-14",
                "the row has 2 fields, the header has 7",
            ]
        );
    }

    #[test]
    fn amounts_are_read_to_the_cent() {
        for (text, value) in [("", 0), ("12", 1200), ("12.5", 1250), ("12.05", 1205), ("0.99", 99)] {
            assert_eq!(cents(text), Some(value), "{text}");
        }
        for text in ["1,5", "1.", ".5", "1e3", "99999999999999999999"] {
            assert_eq!(cents(text), None, "{text}");
        }
    }
}
