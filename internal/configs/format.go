package configs

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"fluentps/ps/workload"

	"gopkg.in/yaml.v3"
)

// format writes the value of a leaf as YAML that reads back equal.
func format(ptr any) string {
	switch v := ptr.(type) {
	case *string:
		return formatString(*v)
	case *bool:
		return strconv.FormatBool(*v)
	case *int:
		return strconv.Itoa(*v)
	case *int64:
		return strconv.FormatInt(*v, 10)
	case *uint64:
		return strconv.FormatUint(*v, 10)
	case *float64:
		return number(*v)
	case *time.Duration:
		return formatDuration(*v)
	case *byteSize:
		return FormatSize(int64(*v))
	case *workerIndex:
		if *v < 0 {
			return `"*"`
		}
		return strconv.Itoa(int(*v))
	case *Until:
		return formatUntil(*v)
	case *workload.Cost:
		return formatCost(*v)
	case *[]string:
		return formatList(*v, formatString)
	case *[]int:
		return formatList(*v, strconv.Itoa)
	case *[]float64:
		return formatList(*v, number)
	case *[]int64:
		return formatList(*v, func(i int64) string { return strconv.FormatInt(i, 10) })
	}
	panic(fmt.Sprintf("configs: no form for %T", ptr))
}

// defaultText writes a default in the form that people write.
func defaultText(ptr any) string {
	switch v := ptr.(type) {
	case *byteSize:
		for _, u := range []struct {
			name string
			size byteSize
		}{{"GB", 1e9}, {"MB", 1e6}} {
			if *v > 0 && *v%u.size == 0 {
				return strconv.FormatInt(int64(*v/u.size), 10) + u.name
			}
		}
	case *time.Duration:
		return strings.Replace(formatDuration(*v), "µ", "u", 1)
	case *float64:
		if *v > 0 && *v < 1e-3 {
			return strings.Replace(strconv.FormatFloat(*v, 'e', -1, 64), "e-0", "e-", 1)
		}
	case *[]Rule:
		return formatList(*v, func(r Rule) string { return fmt.Sprintf("{match: %s, scheme: %s}", formatString(r.Match), r.Scheme) })
	case *[]Fault:
		return "[]"
	}
	return format(ptr)
}

func formatList[T any](items []T, one func(T) string) string {
	words := make([]string, len(items))
	for i, v := range items {
		words[i] = one(v)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

var plainWord = regexp.MustCompile(`^[A-Za-z_/.][A-Za-z0-9_/.-]*$`)

// formatString writes a text as YAML, in quotes if YAML would not read the bare text back as the same text.
func formatString(s string) string {
	n := yaml.Node{Kind: yaml.ScalarNode, Value: s}
	if plainWord.MatchString(s) && n.ShortTag() == "!!str" {
		return s
	}
	return strconv.Quote(s)
}

// formatDuration leaves out the zero tail of the standard form: 10m, not 10m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// FormatSize writes a size as the YAML has it: it takes the largest binary unit that divides the size.
func FormatSize(bytes int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if bytes > 0 && bytes%u.size == 0 {
			return strconv.FormatInt(bytes/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(bytes, 10) + "B"
}

// isZero reports whether an optional leaf is unset.
func isZero(ptr any) bool {
	switch v := ptr.(type) {
	case *string:
		return *v == ""
	case *int:
		return *v == 0
	case *int64:
		return *v == 0
	case *float64:
		return *v == 0
	case *time.Duration:
		return *v == 0
	case *Until:
		return *v == Until{}
	case *workload.Cost:
		return *v == workload.Cost{}
	case *[]int:
		return len(*v) == 0
	case *[]float64:
		return len(*v) == 0
	case *[]int64:
		return len(*v) == 0
	}
	return false
}
