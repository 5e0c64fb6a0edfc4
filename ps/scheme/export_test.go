package scheme

import (
	"fmt"
	"reflect"
)

// SetKey sets the field of p with the yaml tag key from text.
func SetKey(p Params, key, text string) error {
	v := reflect.ValueOf(p).Elem()
	for k := range v.NumField() {
		if v.Type().Field(k).Tag.Get("yaml") != key {
			continue
		}
		if v.Field(k).Kind() == reflect.String {
			v.Field(k).SetString(text)
			return nil
		}
		_, err := fmt.Sscan(text, v.Field(k).Addr().Interface())
		return err
	}
	return fmt.Errorf("%T has no key %s", p, key)
}
