package checkpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Decode reads JSON that was written from a value of the same type. A missing field is an error, because it would be read as zero: our
// programs write all fields except those with omitempty. Unknown members of the text take almost no memory.
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

// reader reads a text that is known to be valid JSON, token by token.
type reader struct{ *json.Decoder }

func (r reader) next() json.Token {
	t, _ := r.Token()
	return t
}

// skip reads past the value that begins with token t.
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

// missing reads a value and returns the path of the first field of its type that the value lacks; "" if it has all.
func (r reader) missing(of reflect.Type, path string) string { return r.missingOf(r.next(), of, path) }

// missingOf is missing for the value that begins with token t.
func (r reader) missingOf(t json.Token, of reflect.Type, path string) (lacks string) {
	if of.Implements(unmarshaler) || reflect.PointerTo(of).Implements(unmarshaler) {
		if r.skip(t); t == nil && of.Kind() == reflect.Struct {
			return path
		}
		return "" // the type reads its own JSON
	}
	switch of.Kind() {
	case reflect.Pointer:
		if t == nil {
			return ""
		}
		return r.missingOf(t, of.Elem(), path)
	case reflect.Slice:
		if t != json.Delim('[') { // JSON has []byte as a string, and a nil slice as null
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

// fieldsOf are the fields of a struct that JSON has. Those of a struct without a name in it are its own.
func fieldsOf(of reflect.Type) (all []reflect.StructField) {
	for i := range of.NumField() {
		f := of.Field(i)
		switch {
		case f.Anonymous && f.Type.Kind() == reflect.Struct && f.Tag.Get("json") == "":
			all = append(all, fieldsOf(f.Type)...)
		case f.IsExported() && fieldName(f) != "-":
			all = append(all, f)
		}
	}
	return all
}

// missingIn is missing for a struct.
func (r reader) missingIn(t json.Token, of reflect.Type, path string) (lacks string) {
	fields := map[string]reflect.Type{} // the fields that the text has not had yet
	all := fieldsOf(of)
	for _, f := range all {
		fields[fieldName(f)] = f.Type
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
	for _, f := range all {
		if _, left := fields[fieldName(f)]; left && !strings.Contains(f.Tag.Get("json"), ",omitempty") {
			return strings.TrimPrefix(path+"."+fieldName(f), ".")
		}
	}
	return lacks
}

// fieldName returns the name of a field in JSON.
func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		return f.Name
	}
	return name
}
