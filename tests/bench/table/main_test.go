package main

import (
	"strings"
	"testing"
)

const lines = `{"what":"pushpull","who":"c","servers":1,"workers":1,"scheme":"asp","bytes":4096,"chunk_bytes":0,"gb_per_s":2,"cpu_s_per_gb":1,"cores":2,"load":1}
{"what":"pushpull","who":"c","servers":1,"workers":1,"scheme":"asp","bytes":4096,"chunk_bytes":262144,"gb_per_s":4,"cpu_s_per_gb":0.5,"round_us_p50":8}
{"what":"pushpull","who":"fluentps","servers":1,"workers":1,"scheme":"asp","bytes":4096,"shared_memory":"off","gb_per_s":3,"cpu_s_per_gb":2,"round_us_p50":9}
{"what":"pushpull","who":"fluentps","servers":1,"workers":1,"scheme":"asp","bytes":4096,"shared_memory":"auto","gb_per_s":8,"cpu_s_per_gb":1,"round_us_p50":2}
{"what":"pushpull","who":"c","servers":1,"workers":1,"scheme":"asp","bytes":4096,"chunk_bytes":0,"gb_per_s":1,"cpu_s_per_gb":1}
{"what":"pushpull","who":"c","servers":1,"workers":1,"scheme":"asp","bytes":4096,"chunk_bytes":262144,"gb_per_s":8,"cpu_s_per_gb":0.5,"round_us_p50":6}

{"what":"pushpull","who":"fluentps","servers":1,"workers":1,"scheme":"asp","bytes":4096,"shared_memory":"off","gb_per_s":2,"cpu_s_per_gb":1,"round_us_p50":7}
{"what":"comm","who":"c","bytes":8,"latency_us":0.5,"gb_per_s":1,"both_gb_per_s":2}
{"what":"comm","who":"fluentps","bytes":8,"latency_us":2,"gb_per_s":3,"both_gb_per_s":4}
`

func TestTable(t *testing.T) {
	var out strings.Builder
	if err := run(strings.NewReader(lines), &out, true); err != nil {
		t.Fatal(err)
	}
	const want = "servers+workers\tscheme\tbytes\tshared_memory\tlaunches\tgb_per_s\tc_whole\tc_chunks\tratio\tround_us_p50" +
		"\tc_round_us_p50\tcpu_s_per_gb\tc_cpu_s_per_gb\tcpu_ratio\n" +
		"1+1\tasp\t4096\toff\t2\t2.50\t1.50\t6.00\t0.50\t8.00\t7.00\t1.50\t0.50\t3.00\n" +
		"1+1\tasp\t4096\tauto\t1\t8.00\t1.50\t6.00\t2.00\t2.00\t7.00\t1.00\t0.50\t2.00\n" +
		"bytes\tlaunches\tlatency_us\tc_latency_us\tmore_us\tstream_gb_per_s\tc_stream_gb_per_s\tboth_gb_per_s\tc_both_gb_per_s\n" +
		"8\t1\t2.00\t0.50\t1.50\t3.00\t1.00\t4.00\t2.00\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	for _, bad := range []string{"", "\n", "mpirun: no slots"} {
		if err := run(strings.NewReader(bad), &out, false); err == nil {
			t.Errorf("%q is a table", bad)
		}
	}
}
