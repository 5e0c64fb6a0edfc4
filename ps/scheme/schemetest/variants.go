package schemetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
)

// Variant is one setting of an entry's keys.
type Variant struct {
	Entry  scheme.Entry
	Common scheme.Common
	Params scheme.Params
}

// String names the variant by its keys, such as "fold=rank staleness=3 release=lazy".
func (v Variant) String() string {
	words := []string{"fold=" + string(v.Common.Fold)}
	for _, d := range scheme.Docs(v.Params) {
		words = append(words, d.Key+"="+d.Default)
	}
	return strings.Join(words, " ")
}

// New makes an instance; a setting of Variants is never refused.
func (v Variant) New(env scheme.Env) scheme.Scheme {
	s, err := v.Entry.New(env, v.Common, v.Params)
	if err != nil {
		panic(fmt.Sprintf("schemetest: %s %v: %v", v.Entry.Name, v, err))
	}
	return s
}

// LeadMax is the bound on c - v of the variant.
func (v Variant) LeadMax() (lead int64, ok bool) { return v.Entry.LeadMax(v.Params) }

// Grants says whether the scheme schedules a link, so that its workers push when they are told to.
func (v Variant) Grants() bool { return v.Entry.Scope == scheme.PerServer }

// drawSubscribed draws whether the workers of a run subscribe; under a scheme that publishes they mostly do.
func (v Variant) drawSubscribed(t *rapid.T) bool {
	return v.Entry.CopiesOf(v.Params) == scheme.Published && rapid.IntRange(0, 3).Draw(t, "fed") > 0
}

func (v Variant) bound() int64 {
	lead, _ := v.LeadMax()
	return lead
}

// Variants lists the combinations of fold order and parameter values that the entry accepts. For a bool or a list it
// tries each value; for an integer the smallest, second and fourth value; for a fraction the smallest, middle and
// largest (2 where there is no limit). Of very many combinations it keeps enough to have each pair of values.
func Variants(e scheme.Entry) []Variant {
	env := scheme.Env{Workers: 2, Shards: []int32{0}, Servers: 1}
	var accepted []Variant
	for _, fold := range []scheme.FoldOrder{scheme.FoldRank, scheme.FoldArrival} {
		for _, params := range combinations(e) {
			v := Variant{Entry: e, Common: scheme.Common{Fold: fold}, Params: params}
			if _, err := e.New(env, v.Common, v.Params); err == nil {
				accepted = append(accepted, v)
			}
		}
	}
	return pairwise(accepted)
}

// combinationsMax is the number of variants up to which all are tried; beyond it, those that pairwise keeps.
const combinationsMax = 24

// pairwise keeps enough of the variants that every two values of two keys which occur together occur together in a kept
// variant. It goes through the variants in random order, so that the kept ones differ in the other keys too.
func pairwise(all []Variant) (kept []Variant) {
	if len(all) <= combinationsMax {
		return all
	}
	seen := map[[2]string]bool{}
	for _, k := range rand.New(rand.NewPCG(1, 2)).Perm(len(all)) {
		words := strings.Fields(all[k].String())
		fresh := false
		for i, a := range words {
			for _, b := range words[:i] {
				fresh = fresh || !seen[[2]string{a, b}]
				seen[[2]string{a, b}] = true
			}
		}
		if fresh {
			kept = append(kept, all[k])
		}
	}
	return kept
}

// combinations is the Cartesian product of the values of each field.
func combinations(e scheme.Entry) []scheme.Params {
	all := []scheme.Params{e.Params()}
	fields := reflect.TypeOf(all[0]).Elem()
	for k := range fields.NumField() {
		var longer []scheme.Params
		for _, base := range all {
			for _, value := range valuesOf(fields.Field(k)) {
				p := e.Params()
				reflect.ValueOf(p).Elem().Set(reflect.ValueOf(base).Elem())
				reflect.ValueOf(p).Elem().Field(k).Set(value.Convert(fields.Field(k).Type))
				longer = append(longer, p)
			}
		}
		all = longer
	}
	return all
}

func valuesOf(field reflect.StructField) []reflect.Value {
	var values []reflect.Value
	switch field.Type.Kind() {
	case reflect.Bool:
		return []reflect.Value{reflect.ValueOf(false), reflect.ValueOf(true)}
	case reflect.String:
		for _, text := range strings.Split(field.Tag.Get("values"), ",") {
			values = append(values, reflect.ValueOf(text))
		}
		return values
	case reflect.Int64:
		least, err := strconv.ParseInt(field.Tag.Get("min"), 10, 64)
		if err != nil {
			panic(fmt.Sprintf("schemetest: %s: an integer key needs a min tag: %v", field.Name, err))
		}
		for _, above := range []int64{0, 1, 3} {
			values = append(values, reflect.ValueOf(least+above))
		}
		return values
	}
	if field.Type.Kind() == reflect.Float64 {
		var least, most float64
		if _, err := fmt.Sscan(field.Tag.Get("min")+" "+cmp.Or(field.Tag.Get("max"), "2"), &least, &most); err != nil {
			panic(fmt.Sprintf("schemetest: %s: a fraction needs a min tag: %v", field.Name, err))
		}
		return []reflect.Value{reflect.ValueOf(least), reflect.ValueOf((least + most) / 2), reflect.ValueOf(most)}
	}
	panic(fmt.Sprintf("schemetest: no values to try for %s of type %v; add them to valuesOf", field.Name, field.Type))
}
