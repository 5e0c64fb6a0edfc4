// Package slurm knows the batch system: the job of a process, from its environment, and job scripts. It never says
// which rank a process is: under mpirun SLURM_PROCID is that of the daemon that started the rank, so ranks come from
// MPI alone.
package slurm

import (
	"fmt"
	"strconv"
	"strings"
)

// hostsMax bounds the length of an expanded host list: a range with a few digits too many would only exhaust the
// memory.
const hostsMax = 1 << 17

// digitsMax is the largest number of digits of a number in a host's name.
const digitsMax = 18

// Expand returns the hosts of a Slurm host list, in its order: rack[1-2]n[08-10],login gives seven names. Zero padding
// is kept. Expand reads all that scontrol show hostnames reads, and also text behind brackets. Steps and exclusions,
// which other tools write, are an error or part of a name for scontrol, and so they are here.
func Expand(list string) ([]string, error) {
	items, err := splitList(list)
	if err != nil {
		return nil, err
	}
	var hosts []string
	for _, item := range items {
		more, err := expandItem(item)
		if err != nil {
			return nil, fmt.Errorf("host list %s: %w", clip(list), err)
		}
		if len(hosts)+len(more) > hostsMax {
			return nil, fmt.Errorf("host list %s: more than %d hosts", clip(list), hostsMax)
		}
		hosts = append(hosts, more...)
	}
	return hosts, nil
}

// splitList splits at the commas outside brackets.
func splitList(list string) (items []string, err error) {
	inside, start := false, 0
	for i, r := range list {
		switch {
		case r == '[' && inside:
			return nil, fmt.Errorf("host list %s: a bracket inside brackets", clip(list))
		case r == '[':
			inside = true
		case r == ']' && !inside:
			return nil, fmt.Errorf("host list %s: a closing bracket without an opening one", clip(list))
		case r == ']':
			inside = false
		case r == ',' && !inside:
			items, start = append(items, list[start:i]), i+1
		case r <= ' ' || r == 0x7f:
			return nil, fmt.Errorf("host list %s: a blank or control character", clip(list))
		}
	}
	if inside {
		return nil, fmt.Errorf("host list %s: a bracket is not closed", clip(list))
	}
	if list == "" {
		return nil, nil
	}
	return append(items, list[start:]), nil
}

// expandItem expands all brackets of one item; the last one varies fastest.
func expandItem(item string) ([]string, error) {
	if item == "" {
		return nil, fmt.Errorf("a name is missing beside a comma")
	}
	hosts := []string{""}
	for item != "" {
		head, rest, bracket := strings.Cut(item, "[")
		texts := []string{""}
		item = ""
		if bracket {
			var inner string
			inner, item, _ = strings.Cut(rest, "]")
			var err error
			if texts, err = expandRanges(inner); err != nil {
				return nil, err
			}
		}
		if len(hosts)*len(texts) > hostsMax {
			return nil, fmt.Errorf("more than %d hosts", hostsMax)
		}
		product := make([]string, 0, len(hosts)*len(texts))
		for _, h := range hosts {
			for _, t := range texts {
				product = append(product, h+head+t)
			}
		}
		hosts = product
	}
	return hosts, nil
}

// expandRanges expands the text between brackets: 1-3,07.
func expandRanges(text string) (numbers []string, err error) {
	for _, part := range strings.Split(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		first, err := number(low)
		if err != nil {
			return nil, err
		}
		last, err := number(high)
		if err != nil {
			return nil, err
		}
		if last < first {
			return nil, fmt.Errorf("the range %s runs backwards", clip(part))
		}
		if last-first >= hostsMax-int64(len(numbers)) {
			return nil, fmt.Errorf("more than %d hosts", hostsMax)
		}
		for n := first; n <= last; n++ {
			numbers = append(numbers, fmt.Sprintf("%0*d", len(low), n))
		}
	}
	return numbers, nil
}

func number(text string) (int64, error) {
	if text == "" || len(text) > digitsMax || strings.Trim(text, "0123456789") != "" {
		return 0, fmt.Errorf("%s is not a number of at most %d digits", clip(text), digitsMax)
	}
	return strconv.ParseInt(text, 10, 64)
}

// Compress returns a short host list that Expand turns into hosts, in the same order. It joins neighbours that differ
// only in the number at the end of their names.
func Compress(hosts []string) string {
	var out strings.Builder
	for start := 0; start < len(hosts); {
		prefix, digits := cutNumber(hosts[start])
		end := start + 1
		for digits != "" && end < len(hosts) {
			p, d := cutNumber(hosts[end])
			if p != prefix || d == "" {
				break
			}
			end++
		}
		if start > 0 {
			out.WriteByte(',')
		}
		if end == start+1 {
			out.WriteString(hosts[start])
		} else {
			out.WriteString(prefix + "[" + ranges(hosts[start:end], len(prefix)) + "]")
		}
		start = end
	}
	return out.String()
}

// ranges writes the numbers after the first skip bytes of names.
func ranges(names []string, skip int) string {
	var parts []string
	for start := 0; start < len(names); {
		low := names[start][skip:]
		n, _ := number(low) // no error: cutNumber has found only digits
		end := start + 1
		for end < len(names) && names[end][skip:] == fmt.Sprintf("%0*d", len(low), n+int64(end-start)) {
			end++
		}
		if end > start+1 {
			low += "-" + names[end-1][skip:]
		}
		parts = append(parts, low)
		start = end
	}
	return strings.Join(parts, ",")
}

// cutNumber splits the number off the end of a name; digits is "" if there is none or if it is too long.
func cutNumber(name string) (prefix, digits string) {
	prefix = strings.TrimRight(name, "0123456789")
	if digits = name[len(prefix):]; len(digits) > digitsMax {
		return name, ""
	}
	return prefix, digits
}

// Counts returns the tasks or cores of each node, from a text such as 4(x2),3: four on each of two nodes, three on the
// next.
func Counts(text string) (counts []int, err error) {
	if text == "" {
		return nil, nil
	}
	for _, part := range strings.Split(text, ",") {
		count, times, repeated := strings.Cut(part, "(x")
		n, err := number(count)
		repeat := int64(1)
		if err == nil && repeated {
			inner, closed := strings.CutSuffix(times, ")")
			if !closed {
				return nil, fmt.Errorf("task counts %s: %s lacks its closing bracket", clip(text), clip(part))
			}
			repeat, err = number(inner)
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("task counts %s: %w", clip(text), err)
		case n > hostsMax, repeat < 1, repeat > int64(hostsMax-len(counts)):
			return nil, fmt.Errorf("task counts %s: %s is out of range: at most %d", clip(text), clip(part), hostsMax)
		}
		for range repeat {
			counts = append(counts, int(n))
		}
	}
	return counts, nil
}

// clip quotes the beginning of a text for a message.
func clip(s string) string {
	const most = 60
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}
