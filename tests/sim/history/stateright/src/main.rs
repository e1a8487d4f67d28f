// Is a partition a log? Reads the rows of a run from standard input, one JSON object a line, as
// `ottla sim export SEED` prints them, and asks the tester of Stateright whether what clients saw is
// linearizable: a record gets the next offset at one moment between question and answer, and what a
// reader was given at an offset is what lies there. Prints `linearizable`, or the first partition
// that is not, or that took too long: the tester tries one order after the other.
//
// A request is a thread of its own to the tester, for clients have several under way. When it was
// asked and answered is told by its place among the rows.

use serde_json::Value;
use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};
use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::mpsc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);
const STACK: usize = 1 << 30; // the tester calls itself once for each request
const NEVER: i64 = i64::MAX;

#[derive(Clone, Debug)]
enum Asked {
    Send(i64),
    Read,
}

#[derive(Clone, Debug, PartialEq)]
enum Heard {
    Stored(i64),
    Given(Vec<(i64, i64)>), // offsets and values
}

#[derive(Clone)]
struct Log(Vec<i64>);

impl SequentialSpec for Log {
    type Op = Asked;
    type Ret = Heard;

    // What nobody heard of: a record that may be stored, or not.
    fn invoke(&mut self, asked: &Asked) -> Heard {
        if let Asked::Send(value) = asked {
            self.0.push(*value);
        }
        Heard::Stored(self.0.len() as i64 - 1)
    }

    fn is_valid_step(&mut self, asked: &Asked, heard: &Heard) -> bool {
        match (asked, heard) {
            (Asked::Send(value), Heard::Stored(off)) if *off == self.0.len() as i64 => {
                self.0.push(*value);
                true
            }
            (Asked::Read, Heard::Given(records)) => records
                .iter()
                .all(|(off, value)| self.0.get(*off as usize) == Some(value)),
            _ => false,
        }
    }
}

struct Request {
    asked: Asked,
    from: i64,
    heard: Option<Heard>,
    to: i64,
}

fn number(row: &Value, name: &str) -> Option<i64> {
    row[name].as_i64()
}

// The requests of each partition. What certainly failed was nothing. What was given up, or had no
// answer to the end, is stored where a reader found it, or maybe at any later moment.
fn requests(rows: &[Value]) -> BTreeMap<i64, Vec<Request>> {
    let mut found: BTreeMap<i64, Vec<Request>> = BTreeMap::new();
    let mut open: BTreeMap<i64, (i64, i64, i64)> = BTreeMap::new(); // by op
    let mut places: BTreeMap<(i64, i64), i64> = BTreeMap::new(); // by partition and value
    for row in rows {
        let place = 2 * number(row, "eid").unwrap() + 1;
        let partition = number(row, "partition").unwrap_or(-1);
        let add = |asked, from, heard, to| Request { asked, from, heard, to };
        match row["kind"].as_str().unwrap() {
            "inv" => {
                let sent = (partition, number(row, "value").unwrap(), place);
                open.insert(number(row, "op").unwrap(), sent);
            }
            "fail" => {
                number(row, "op").and_then(|op| open.remove(&op));
            }
            "ok" => {
                let (op, off) = (number(row, "op").unwrap(), number(row, "off"));
                if let (Some(off), Some(sent)) = (off.filter(|off| *off >= 0), open.get(&op)) {
                    let heard = Some(Heard::Stored(off));
                    let request = add(Asked::Send(sent.1), sent.2, heard, place);
                    found.entry(sent.0).or_default().push(request);
                    open.remove(&op);
                }
            }
            "fetch" => {
                let from = number(row, "aux").map_or(0, |rows| 2 * rows);
                let request = add(Asked::Read, from, Some(Heard::Given(vec![])), place);
                found.entry(partition).or_default().push(request);
            }
            "poll" => {
                let record = (number(row, "off").unwrap(), number(row, "value").unwrap());
                places.entry((partition, record.1)).or_insert(record.0);
                let read = found.entry(partition).or_default().iter_mut().rev();
                let mut of_reads = read.filter(|each| matches!(each.asked, Asked::Read));
                if let Some(Heard::Given(records)) = &mut of_reads.next().unwrap().heard {
                    records.push(record);
                }
            }
            _ => {}
        }
    }
    for (partition, value, from) in open.into_values() {
        let heard = places.get(&(partition, value)).map(|off| Heard::Stored(*off));
        let request = Request { asked: Asked::Send(value), from, heard, to: NEVER };
        found.entry(partition).or_default().push(request);
    }
    found
}

fn linearizable(requests: Vec<Request>) -> bool {
    let mut tester = LinearizabilityTester::new(Log(vec![]));
    let mut steps: Vec<(i64, usize, bool)> = vec![];
    for (thread, each) in requests.iter().enumerate() {
        steps.push((each.from, thread, false));
        if each.heard.is_some() {
            steps.push((each.to, thread, true));
        }
    }
    steps.sort();
    for (_, thread, answered) in steps {
        let each = &requests[thread];
        if answered {
            tester.on_return(thread, each.heard.clone().unwrap()).unwrap();
        } else {
            tester.on_invoke(thread, each.asked.clone()).unwrap();
        }
    }
    tester.is_consistent()
}

fn main() {
    let lines = std::io::stdin().lock().lines();
    let rows: Vec<Value> = lines
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect();
    for (partition, mut requests) in requests(&rows) {
        requests.retain(|each| each.heard != Some(Heard::Given(vec![])));
        requests.sort_by_key(|each| (each.heard.is_none(), each.from));
        let (tell, told) = mpsc::channel();
        let work = move || tell.send(linearizable(requests)).unwrap();
        std::thread::Builder::new().stack_size(STACK).spawn(work).unwrap();
        match told.recv_timeout(PATIENCE) {
            Ok(true) => continue,
            Ok(false) => println!("partition {partition}: not linearizable"),
            Err(_) => println!("partition {partition}: unknown"),
        }
        std::process::exit(1);
    }
    println!("linearizable");
}
