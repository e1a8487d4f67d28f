// Is a partition a log? Reads the rows of a run from standard input, one JSON object a line, as
// `ottla sim export SEED` prints them, and asks Porcupine whether what clients saw is linearizable:
// a record gets the next offset at one moment between question and answer, and what a consumer was
// given at an offset is what lies there. Prints `linearizable`, or the first partition that is not.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

const patience = 5 * time.Second

type row struct {
	Kind      string `json:"kind"`
	Time      int64  `json:"t_us"`
	Client    int    `json:"client"`
	Op        *int   `json:"op"`
	Partition int    `json:"partition"`
	Off       *int   `json:"off"`
	Value     int    `json:"value"`
}

// request: a record is sent, or the one at an offset is read.
type request struct {
	send  bool
	off   int // of a read
	value int
}

// response: where a record was stored; -1 if nobody knows whether it was.
type response struct{ off int }

// stored is a log, by its last record. Logs share what is before it.
type stored struct {
	before *stored
	size   int
	value  int
	hash   uint64
}

func (log *stored) with(value int) *stored {
	told := fnv.New64a()
	fmt.Fprintf(told, "%d %d", log.hash, value)
	return &stored{log, log.size + 1, value, told.Sum64()}
}

func (log *stored) holds(off, value int) bool {
	at := log
	for at.size > off+1 {
		at = at.before
	}
	return at.size == off+1 && at.value == value
}

var model = porcupine.NondeterministicModel{
	Init: func() []interface{} { return []interface{}{&stored{}} },
	Step: func(state, input, output interface{}) []interface{} {
		log, asked, heard := state.(*stored), input.(request), output.(response)
		switch {
		case !asked.send && log.holds(asked.off, asked.value):
			return []interface{}{log}
		case asked.send && heard.off == log.size:
			return []interface{}{log.with(asked.value)}
		case asked.send && heard.off < 0:
			return []interface{}{log, log.with(asked.value)}
		}
		return nil
	},
	Equal: func(one, other interface{}) bool {
		left, right := one.(*stored), other.(*stored)
		return left.size == right.size && left.hash == right.hash
	},
}

func main() {
	partitions := operations(rows())
	numbers := make([]int, 0, len(partitions))
	for number := range partitions {
		numbers = append(numbers, number)
	}
	sort.Ints(numbers)
	for _, number := range numbers {
		found := porcupine.CheckOperationsTimeout(model.ToModel(), partitions[number], patience)
		if found != porcupine.Ok {
			fmt.Printf("partition %d: %s\n", number, found)
			os.Exit(1)
		}
	}
	fmt.Println("linearizable")
}

func rows() []row {
	var found []row
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one row
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			panic(err)
		}
		found = append(found, one)
	}
	if err := lines.Err(); err != nil {
		panic(err)
	}
	return found
}

// operations of each partition. What certainly failed was nothing; what was given up, or had no
// answer to the end, may be stored at any later moment.
func operations(rows []row) map[int][]porcupine.Operation {
	found := map[int][]porcupine.Operation{}
	asked := map[int]row{}
	answered := map[[2]int]int64{} // when a consumer had its last answer of a partition
	var fetched row
	var began int64
	add := func(partition, who int, input request, call int64, output response, end int64) {
		one := porcupine.Operation{ClientId: who, Input: input, Call: call, Output: output, Return: end}
		found[partition] = append(found[partition], one)
	}
	for _, one := range rows {
		switch one.Kind {
		case "inv":
			asked[*one.Op] = one
		case "fail":
			delete(asked, *one.Op)
		case "ok":
			if sent, known := asked[*one.Op]; known && one.Off != nil && *one.Off >= 0 {
				delete(asked, *one.Op)
				add(sent.Partition, sent.Client, request{true, 0, sent.Value}, sent.Time, response{*one.Off}, one.Time)
			}
		case "fetch":
			fetched, began = one, answered[[2]int{one.Client, one.Partition}]
			answered[[2]int{one.Client, one.Partition}] = one.Time
		case "poll":
			add(one.Partition, one.Client, request{false, *one.Off, one.Value}, began, response{}, fetched.Time)
		}
	}
	for _, sent := range asked {
		add(sent.Partition, sent.Client, request{true, 0, sent.Value}, sent.Time, response{-1}, math.MaxInt64)
	}
	return found
}
