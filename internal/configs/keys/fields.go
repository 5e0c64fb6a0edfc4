package keys

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/settings"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/named"
	"fluentps/internal/policy/optim"
	"fluentps/internal/policy/payload"
	"fluentps/internal/policy/send"
	"fluentps/internal/policy/straggler"
	"fluentps/internal/policy/work"
	"fluentps/internal/show/metrics/records"
	"fluentps/ps/scheme"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/csv"
)

// row is a key of a struct.
type row struct {
	Spec
	index []int        // the index of its field
	as    reflect.Type // the type under which the readers know it
}

// lists are the words of tables in other packages.
var lists = map[string]func() []string{
	"key forms": shard.KeyForms, "placements": shard.Placements, "slices": shard.Slices, "thresholds": payload.Thresholds,
	"data sets": dataset.SetNames, "partitions": dataset.PartitionNames, "models": workload.ModelNames,
	"models with layers": workload.WithLayers, "models with targets": workload.WithTargets,
	"optimizers": optim.Names, "schedules": optim.ScheduleNames,
	"orders":   namesIn(&send.All),
	"payloads": namesIn(&payload.All), "dense payloads": settings.DensePayloads, "sparse payloads": settings.SparsePayloads,
	"schemes": namesIn(&scheme.All),
	"sinks":   records.SinkNames, "stragglers": namesIn(&straggler.All), "works": namesIn(&work.All),
	"locals": namesIn(&local.All), "locals with a rate": local.OuterRates, "locals with a rule": local.OuterRules,
	"periods": namesIn(&local.Periods), "works with steps": work.WithSteps,
}

// namesIn lists the names of a table when they are asked for: a program outside may have added some.
func namesIn[E named.Entry](t *named.Table[E]) func() []string {
	return func() []string { return t.Names() }
}

// The tables: the whole file, a rule, one of several schemes of a rule, a fault. The keys of a scheme come from its own struct.
var (
	TopKeys  = fields(settings.Defaults)
	RuleKeys = sync.OnceValue(func() []row {
		return slices.DeleteFunc(fields(settings.NewRule)(), func(r row) bool { return r.Path == "until" })
	})
	PhaseKeys = fields(func() (p settings.Phase) { return })
	FaultKeys = fields(settings.NewFault)
)

// fields makes the table of a struct when it is first used.
func fields[T any](defaults func() T) func() []row {
	return sync.OnceValue(func() []row {
		v := defaults()
		return rowsOf(reflect.ValueOf(&v).Elem())
	})
}

// rowsOf reads the tags of a struct, whose values are the defaults. It panics on an invalid tag, which is our own mistake.
func rowsOf(defaults reflect.Value) (rows []row) {
	var walk func(t reflect.Type, section string, index []int)
	walk = func(t reflect.Type, section string, index []int) {
		for i := range t.NumField() {
			f := t.Field(i)
			tag, tagged := f.Tag.Lookup("yaml")
			name, option, _ := strings.Cut(tag, ",")
			path, at := section, append(slices.Clone(index), i)
			if name != "" {
				path = diag.Join(section, name)
			}
			switch {
			case !tagged && !f.Anonymous:
			case f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[settings.Until]() && f.Type != reflect.TypeFor[workload.Cost]() &&
				f.Type != reflect.TypeFor[csv.Columns]():
				walk(f.Type, path, at)
			default:
				r := row{Spec: specOf(path, f.Tag, rows), index: at, as: readAs(f)}
				if r.Required = option == "required"; option == "" {
					r.Def = defaultText(r.pointer(defaults))
				}
				rows = append(rows, r)
			}
		}
	}
	walk(defaults.Type(), "", nil)
	return rows
}

// specOf reads the tags of a field; the default is not in them. earlier are the keys that a when tag may name.
func specOf(path string, tag reflect.StructTag, earlier []row) Spec {
	s := Spec{Path: path, Span: spanOf(tag), Words: wordsOf(tag.Get("values")), Text: textForms[tag.Get("form")],
		single: tag.Get("as") == "float32", Doc: tag.Get("doc"), Idle: tag.Get("idle")}
	if tag.Get("values") == "@models" {
		s.Doc += workload.OwnDocs()
	}
	if n := tag.Get("items"); n != "" {
		s.Items = int(Amount(n))
	}
	by, values, tied := strings.Cut(tag.Get("when"), "=")
	for section := path; tied && s.Only == nil; {
		if section == "" {
			panic(fmt.Sprintf("configs: %s: no key %s stands before it", path, by))
		}
		section = section[:max(0, strings.LastIndexByte(section, '.'))]
		if slices.ContainsFunc(earlier, func(r row) bool { return r.Path == diag.Join(section, by) }) {
			s.Only = &Condition{diag.Join(section, by), wordsOf(values)}
		}
	}
	return s
}

func wordsOf(tag string) func() []string {
	if name, of := strings.CutPrefix(tag, "@"); of {
		return lists[name]
	}
	if tag == "" {
		return nil
	}
	return func() []string { return strings.Split(tag, ",") }
}

// plainTypes are the types of plain values, by kind: a named string is read as a string.
var plainTypes = map[reflect.Kind]reflect.Type{
	reflect.String: reflect.TypeFor[string](), reflect.Bool: reflect.TypeFor[bool](), reflect.Int: reflect.TypeFor[int](),
	reflect.Int64: reflect.TypeFor[int64](), reflect.Uint64: reflect.TypeFor[uint64](), reflect.Float64: reflect.TypeFor[float64](),
}

func readAs(f reflect.StructField) reflect.Type {
	switch unit, plain := f.Tag.Get("unit"), plainTypes[f.Type.Kind()]; {
	case unit == "bytes":
		return reflect.TypeFor[ByteSize]()
	case unit == "worker":
		return reflect.TypeFor[WorkerIndex]()
	case plain != nil && f.Type != reflect.TypeFor[time.Duration]():
		return plain
	}
	return f.Type
}

// pointer returns a pointer to the value of the key in a struct.
func (r *row) pointer(root reflect.Value) any {
	return root.FieldByIndex(r.index).Addr().Convert(reflect.PointerTo(r.as)).Interface()
}

// spanOf reads the limits in the tags of a field.
func spanOf(tag reflect.StructTag) Span {
	s := Span{Lo: math.Inf(-1), Hi: math.Inf(1)}
	for _, end := range []struct {
		name string
		at   *float64
		open *bool
	}{{"min", &s.Lo, new(bool)}, {"max", &s.Hi, new(bool)}, {"above", &s.Lo, &s.LoOpen}, {"below", &s.Hi, &s.HiOpen}} {
		if text, ok := tag.Lookup(end.name); ok {
			*end.at, *end.open, s.Set = Amount(text), true, true
		}
	}
	return s
}

// Amount reads a number, a size in bytes or a time in seconds, as a tag has it or as Format writes it. It panics on any other text.
func Amount(text string) float64 {
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return v
	}
	if v, err := parseSize(text); err == nil {
		return float64(v)
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic("configs: a tag has the limit " + text)
	}
	return d.Seconds()
}

// BindParams binds the keys of a scheme to its params. Params.Check checks their numbers, and Read does not.
func BindParams(p scheme.Params) []*Leaf {
	v := reflect.ValueOf(p).Elem()
	var leaves []*Leaf
	for _, r := range rowsOf(v) {
		r.SchemeSpan, r.Span = r.Span, Span{}
		leaves = append(leaves, &Leaf{Spec: &r.Spec, Ptr: r.pointer(v)})
	}
	return leaves
}
