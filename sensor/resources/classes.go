package resources

import "inquest/sensor"

// Limited returns the classes whose kinds end in [KindAtLimit].
func Limited() []sensor.Class { return chosen(limited) }

// Growing returns the classes whose kinds end in [KindTrend].
func Growing() []sensor.Class { return chosen(growing) }

// Swinging returns the classes whose kinds end in [KindSawtooth].
func Swinging() []sensor.Class { return chosen(swinging) }

// chosen returns the classes of a set in their usual order.
func chosen(set map[sensor.Class]bool) []sensor.Class {
	var out []sensor.Class
	for _, c := range sensor.Classes() {
		if set[c] {
			out = append(out, c)
		}
	}
	return out
}
