//! The file as CSV: its header, how many rows it has, and rows from a place on.
//!
//! UTF-8 with or without a byte order mark, commas, quotes doubled inside quotes, any line ends. A row that is no UTF-8 or
//! has too many or too few fields is still a row: it is read, and judged with the others. Lines count from 1, the header
//! included; the place is a byte offset into the file.

use super::super::step;
use crate::core::effect::SqlValue;
use crate::handler::HandlerError;
use bytes::Bytes;
use csv::{ByteRecord, Reader, ReaderBuilder};
use serde::{Deserialize, Serialize};

/// The columns that are read. The first three are needed.
pub(super) const COLUMNS: [&str; 7] = ["number", "name", "email", "city", "country", "credit_limit", "since"];
const NEEDED: usize = 3;

/// Where to go on in a file, and which of its columns is which.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    /// The byte that the next row begins at.
    pub offset: u64,
    /// The line of that byte, from 1.
    pub line: u64,
    /// For each of [`COLUMNS`] its place in the file's rows.
    pub columns: [Option<usize>; 7],
    /// Fields that each row has to have.
    pub width: usize,
}

/// What the first look at a file tells.
#[derive(Debug)]
pub(super) struct Look {
    /// Where the first row begins.
    pub position: Position,
    /// How many rows there are; lines without anything count as none.
    pub total: i64,
}

/// A row as it stands in the file.
#[derive(Debug)]
pub(super) struct FileRow {
    /// The line it begins in, from 1.
    pub line: i64,
    /// Whether it has as many fields as the header.
    pub fits: Result<(), (usize, usize)>,
    record: ByteRecord,
    columns: [Option<usize>; 7],
}

/// Some rows, and where the next ones begin.
#[derive(Debug)]
pub(super) struct Batch {
    pub rows: Vec<FileRow>,
    pub next: Position,
}

impl FileRow {
    /// A field by its place in [`COLUMNS`], trimmed; empty when the file has no such column. `None` when it is no UTF-8.
    pub fn field(&self, column: usize) -> Option<&str> {
        let bytes = self.columns[column].and_then(|at| self.record.get(at)).unwrap_or_default();
        std::str::from_utf8(bytes).ok().map(str::trim)
    }

    /// The row as one line of CSV, what is no UTF-8 replaced.
    pub fn source(&self) -> String {
        let fields: Vec<_> = self.record.iter().map(String::from_utf8_lossy).collect();
        line(&fields)
    }
}

/// Reads the header and counts the rows.
pub(super) fn look(bytes: &[u8]) -> Result<Look, HandlerError> {
    let start = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut reader = reader(&bytes[start..]);
    let mut header = ByteRecord::new();
    if !next(&mut reader, &mut header)? {
        let position = Position { offset: count(bytes.len()), line: 1, columns: [None; 7], width: 0 };
        return Ok(Look { position, total: 0 });
    }
    let names: Vec<String> = header.iter().map(|name| String::from_utf8_lossy(name).trim().to_lowercase()).collect();
    let columns = COLUMNS.map(|column| names.iter().position(|name| name == column));
    if let Some(missing) = columns.iter().take(NEEDED).position(Option::is_none) {
        return Err(HandlerError::permanent(
            "missing-column",
            format!("File has no column `{}`. Choose another file or add the column.", COLUMNS[missing]),
        ));
    }
    let at = start + size(reader.position().byte());
    let line = 1 + line_ends(&bytes[..at]);
    let position = Position { offset: count(at), line, columns, width: header.len() };
    let (mut total, mut record) = (0, ByteRecord::new());
    while next(&mut reader, &mut record)? {
        total += 1;
    }
    Ok(Look { position, total })
}

/// Reads up to `limit` rows.
pub(super) fn read(bytes: &[u8], from: &Position, limit: usize) -> Result<Batch, HandlerError> {
    let rest = usize::try_from(from.offset).ok().and_then(|at| bytes.get(at..)).ok_or_else(|| {
        HandlerError::permanent("file-changed", "The file is shorter than at the last checkpoint. Start a new import.")
    })?;
    let mut reader = reader(rest);
    let mut rows = Vec::new();
    let mut record = ByteRecord::new();
    let (mut line, mut at) = (from.line, 0);
    while rows.len() < limit && next(&mut reader, &mut record)? {
        // The reader stops after the first byte of a line end; what is left of it, and empty lines, come before the row.
        let begin = size(record.position().map_or(0, csv::Position::byte));
        let begin = begin + rest[begin..].iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
        line += line_ends(&rest[at..begin]);
        at = begin;
        let fits = if record.len() == from.width { Ok(()) } else { Err((record.len(), from.width)) };
        let line = i64::try_from(line).expect("a file has fewer than 2^63 lines");
        rows.push(FileRow { line, fits, record: record.clone(), columns: from.columns });
    }
    let end = size(reader.position().byte());
    let next = Position { offset: from.offset + count(end), line: line + line_ends(&rest[at..end]), ..from.clone() };
    Ok(Batch { rows, next })
}

/// The file of rejected rows: the line in the source, the reason, the row as it was.
pub(super) fn rejected(rows: &[Vec<SqlValue>]) -> Result<Bytes, HandlerError> {
    let mut text = String::from("line,reason,row\n");
    for row in rows {
        let fields = [step::int(row, 0)?.to_string(), step::text(row, 1)?.to_owned(), step::text(row, 2)?.to_owned()];
        text.push_str(&line(&fields));
        text.push('\n');
    }
    Ok(text.into())
}

fn reader(bytes: &[u8]) -> Reader<&[u8]> {
    ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes)
}

fn next(reader: &mut Reader<&[u8]>, record: &mut ByteRecord) -> Result<bool, HandlerError> {
    reader
        .read_byte_record(record)
        .map_err(|error| HandlerError::permanent("bad-file", format!("The file cannot be read as CSV: {error}.")))
}

/// Fields as one line of CSV, quoted where needed.
fn line(fields: &[impl AsRef<str>]) -> String {
    let quoted = fields.iter().map(|field| {
        let field = field.as_ref();
        if field.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field.into()
        }
    });
    quoted.collect::<Vec<String>>().join(",")
}

fn line_ends(bytes: &[u8]) -> u64 {
    count(bytes.iter().filter(|b| **b == b'\n').count())
}

fn count(n: usize) -> u64 {
    u64::try_from(n).expect("sizes fit 64 bits")
}

fn size(n: u64) -> usize {
    usize::try_from(n).expect("the file is in memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All rows, read in batches of a size, as (line, source).
    fn rows(text: &[u8], batch: usize) -> Vec<(i64, String)> {
        let mut place = look(text).unwrap().position;
        let mut rows = Vec::new();
        loop {
            let read = read(text, &place, batch).unwrap();
            if read.rows.is_empty() {
                return rows;
            }
            rows.extend(read.rows.iter().map(|row| (row.line, row.source())));
            place = read.next;
        }
    }

    #[test]
    fn batches_of_any_size_read_the_same_rows_with_their_lines() {
        let text =
            "\u{feff}Number, name ,EMAIL\r\n1,\"a, \"\"b\"\"\",x\r\n\r\n2,\"two\r\nlines\",y\n3,李,z\n4,x\n5,last,v";
        let whole = rows(text.as_bytes(), 100);
        assert_eq!(whole[0], (2, "1,\"a, \"\"b\"\"\",x".to_owned()));
        assert_eq!(whole.last().unwrap().1, "5,last,v");
        assert_eq!(whole.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 4, 6, 7, 8]);
        for batch in 1..5 {
            assert_eq!(rows(text.as_bytes(), batch), whole, "{batch}");
        }
        assert_eq!(look(text.as_bytes()).unwrap().total, 5);
    }

    #[test]
    fn a_header_without_a_needed_column_is_told_with_its_name_and_the_next_step() {
        let error = look(b"number,name,mail\n1,a,b\n").unwrap_err();
        assert_eq!(error.to_string(), "File has no column `email`. Choose another file or add the column.");
    }

    #[test]
    fn an_empty_file_and_a_lone_header_have_no_rows() {
        for text in ["", "\u{feff}", "number,name,email", "number,name,email\n\n"] {
            assert_eq!(look(text.as_bytes()).unwrap().total, 0, "{text:?}");
        }
    }

    #[test]
    fn the_shipped_file_has_20_000_rows() {
        assert_eq!(look(super::super::SHIPPED.as_bytes()).unwrap().total, 20_000);
    }
}
