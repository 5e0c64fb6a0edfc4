package checkpoint

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Decode reads JSON that was written from a value of the same type. A field that is missing is an error, for it would be read
// as zero: what a program of ours writes has all of them, but those with omitempty.
func Decode(data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return err
	}
	var raw any
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	if lacks := missing(raw, reflect.TypeOf(into).Elem(), ""); lacks != "" {
		return fmt.Errorf("it has no %s", lacks)
	}
	return nil
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// missing names the first field of a type that is not in what was read, by its path; "" if none is.
func missing(raw any, of reflect.Type, path string) string {
	if of.Implements(unmarshaler) || reflect.PointerTo(of).Implements(unmarshaler) {
		if raw == nil && of.Kind() == reflect.Struct {
			return path
		}
		return "" // it knows its own form
	}
	switch of.Kind() {
	case reflect.Pointer:
		if raw == nil {
			return ""
		}
		return missing(raw, of.Elem(), path)
	case reflect.Slice:
		list, _ := raw.([]any) // bytes are a text, and nil is none
		for i, v := range list {
			if lacks := missing(v, of.Elem(), fmt.Sprintf("%s[%d]", path, i)); lacks != "" {
				return lacks
			}
		}
	case reflect.Struct:
		object, _ := raw.(map[string]any)
		return missingIn(object, of, path)
	case reflect.Map, reflect.Interface:
	default:
		if raw == nil {
			return path
		}
	}
	return ""
}

func missingIn(object map[string]any, of reflect.Type, path string) string {
	for i := range of.NumField() {
		f := of.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		raw, there := object[name]
		if !there && strings.Contains(options, "omitempty") {
			continue
		}
		if !there {
			return at
		}
		if lacks := missing(raw, f.Type, at); lacks != "" {
			return lacks
		}
	}
	return ""
}
