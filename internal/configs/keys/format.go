package keys

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/settings"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset/csv"
)

// Format writes the value of a leaf as YAML that reads back equal.
func Format(ptr any) string {
	switch v := ptr.(type) {
	case *string:
		return diag.FormatString(*v)
	case *bool:
		return strconv.FormatBool(*v)
	case *int:
		return strconv.Itoa(*v)
	case *int64:
		return strconv.FormatInt(*v, 10)
	case *uint64:
		return strconv.FormatUint(*v, 10)
	case *float64:
		return diag.FormatNumber(*v)
	case *time.Duration:
		return diag.FormatDuration(*v)
	case *ByteSize:
		return diag.FormatSize(int64(*v))
	case *WorkerIndex:
		if *v < 0 {
			return `"*"`
		}
		return strconv.Itoa(int(*v))
	case *settings.Until:
		return formatUntil(*v)
	case *workload.Cost:
		return FormatCost(*v)
	case *csv.Columns:
		return formatColumns(*v)
	case *[]string:
		return formatList(*v, diag.FormatString)
	case *[]int:
		return formatList(*v, strconv.Itoa)
	case *[]float64:
		return formatList(*v, diag.FormatNumber)
	case *[]int64:
		return formatList(*v, func(i int64) string { return strconv.FormatInt(i, 10) })
	}
	panic(fmt.Sprintf("configs: no form for %T", ptr))
}

// defaultText writes a default in the form that people write.
func defaultText(ptr any) string {
	switch v := ptr.(type) {
	case *ByteSize:
		for _, u := range []struct {
			name string
			size ByteSize
		}{{"GB", 1e9}, {"MB", 1e6}} {
			if *v > 0 && *v%u.size == 0 {
				return strconv.FormatInt(int64(*v/u.size), 10) + u.name
			}
		}
	case *time.Duration:
		return strings.Replace(diag.FormatDuration(*v), "µ", "u", 1)
	case *float64:
		if *v > 0 && *v < 1e-3 {
			return strings.Replace(strconv.FormatFloat(*v, 'e', -1, 64), "e-0", "e-", 1)
		}
	case *[]settings.Rule:
		return formatList(*v, func(r settings.Rule) string {
			return fmt.Sprintf("{match: %s, scheme: %s}", diag.FormatString(r.Match), r.Scheme)
		})
	case *[]settings.Fault:
		return "[]"
	}
	return Format(ptr)
}

func formatList[T any](items []T, one func(T) string) string {
	words := make([]string, len(items))
	for i, v := range items {
		words[i] = one(v)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// FaultText writes a fault as an item of faults, without what is a default: {worker: 3, slow: {factor: 5}}.
func FaultText(f *settings.Fault) string {
	parts := map[string][]string{}
	for _, l := range bindFault("", f).Leaves {
		section, name, in := strings.Cut(l.Spec.Path, ".")
		if in && bindFault("", f).Met(l) && !isZero(l.Ptr) && !l.IsDefault() {
			parts[section] = append(parts[section], name+": "+Format(l.Ptr))
		}
	}
	who := WorkerIndex(f.Worker)
	text := "{worker: " + Format(&who)
	for _, section := range []string{"slow", "pause"} {
		if of := parts[section]; of != nil {
			text += fmt.Sprintf(", %s: {%s}", section, strings.Join(of, ", "))
		}
	}
	return text + "}"
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
	case *settings.Until:
		return *v == settings.Until{}
	case *workload.Cost:
		return *v == workload.Cost{}
	case *csv.Columns:
		return *v == csv.Columns{}
	case *[]string:
		return len(*v) == 0
	case *[]int:
		return len(*v) == 0
	case *[]float64:
		return len(*v) == 0
	case *[]int64:
		return len(*v) == 0
	}
	return false
}
