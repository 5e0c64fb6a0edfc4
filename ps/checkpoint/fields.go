package checkpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Decode reads JSON that was written from a value of the same type. A field that is missing is an error, for it would be read
// as zero: what a program of ours writes has all of them, but those with omitempty. Beside what it reads into it takes no memory to
// speak of, whatever else stands in the text.
func Decode(data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return err
	}
	r := reader{json.NewDecoder(bytes.NewReader(data))}
	if lacks := r.missing(reflect.TypeOf(into).Elem(), ""); lacks != "" {
		return fmt.Errorf("it has no %s", lacks)
	}
	return nil
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// reader goes through a text that is known to be JSON, token by token.
type reader struct{ *json.Decoder }

func (r reader) next() json.Token {
	t, _ := r.Token()
	return t
}

// skip passes over the value that begins with a token.
func (r reader) skip(t json.Token) {
	for depth := 0; ; t = r.next() {
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return
		}
	}
}

// missing reads a value and names the first field of its type that is not in it, by its path; "" if none is.
func (r reader) missing(of reflect.Type, path string) string { return r.missingOf(r.next(), of, path) }

// missingOf is missing of the value that begins with a token.
func (r reader) missingOf(t json.Token, of reflect.Type, path string) (lacks string) {
	if of.Implements(unmarshaler) || reflect.PointerTo(of).Implements(unmarshaler) {
		if r.skip(t); t == nil && of.Kind() == reflect.Struct {
			return path
		}
		return "" // it knows its own form
	}
	switch of.Kind() {
	case reflect.Pointer:
		if t == nil {
			return ""
		}
		return r.missingOf(t, of.Elem(), path)
	case reflect.Slice:
		if t != json.Delim('[') { // bytes are a text, and nil is none
			return ""
		}
		for i := 0; r.More(); i++ {
			if in := r.missing(of.Elem(), fmt.Sprintf("%s[%d]", path, i)); lacks == "" {
				lacks = in
			}
		}
		r.next()
		return lacks
	case reflect.Struct:
		return r.missingIn(t, of, path)
	case reflect.Map, reflect.Interface:
	default:
		if t == nil {
			return path
		}
	}
	r.skip(t)
	return ""
}

// missingIn is missing of a struct.
func (r reader) missingIn(t json.Token, of reflect.Type, path string) (lacks string) {
	fields := map[string]reflect.Type{} // that have not been met
	for i := range of.NumField() {
		if f := of.Field(i); f.IsExported() && fieldName(f) != "-" {
			fields[fieldName(f)] = f.Type
		}
	}
	if t != json.Delim('{') {
		r.skip(t)
	} else {
		for r.More() {
			name, _ := r.next().(string)
			field, known := fields[name]
			if !known {
				r.skip(r.next())
				continue
			}
			delete(fields, name)
			if in := r.missing(field, strings.TrimPrefix(path+"."+name, ".")); lacks == "" {
				lacks = in
			}
		}
		r.next()
	}
	for i := range of.NumField() {
		f := of.Field(i)
		if _, left := fields[fieldName(f)]; left && f.IsExported() && !strings.Contains(f.Tag.Get("json"), ",omitempty") {
			return strings.TrimPrefix(path+"."+fieldName(f), ".")
		}
	}
	return lacks
}

// fieldName is the name of a field in JSON.
func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		return f.Name
	}
	return name
}
