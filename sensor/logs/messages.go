package logs

import (
	"fmt"
	"strings"

	"inquest/record"
	"inquest/sensor"
)

// KindMessage begins the kinds of findings about topics: message_oom_kill is how
// often an entity tells of one.
const KindMessage = "message_"

// Kinds returns the kinds of findings about topics, in the order of the table.
func (t *Table) Kinds() []string {
	out := make([]string, t.topics)
	for i := range out {
		out[i] = KindMessage + t.names[i]
	}
	return out
}

func kindOf(topic string) string {
	if strings.HasPrefix(topic, changePrefix) {
		return KindChange
	}
	return KindMessage + topic
}

// messages compares how often each entity tells of each topic.
func messages(t *Table, base []*sensor.Profile, inc *sensor.Profile) []sensor.Compared {
	c := compare(t, 0, t.topics, base, []*sensor.Profile{inc})
	measured := c.measured()
	var out []sensor.Compared
	told := map[pair]bool{}
	for _, k := range c.pairs {
		x, ok := c.finding(k, measured[k])
		if !ok {
			continue
		}
		told[k] = true
		x.Text = messageText(&x.Finding, t.names[k.topic])
		out = append(out, x)
	}
	for _, e := range c.entities {
		if !c.examined(e) {
			continue
		}
		for topic := range t.topics {
			if !told[pair{e, topic}] {
				out = append(out, c.quiet(e, KindMessage+t.names[topic]))
			}
		}
	}
	return out
}

func messageText(f *record.Finding, topic string) string {
	topic = strings.ReplaceAll(topic, "_", " ")
	how := "as often as usual"
	switch f.Direction {
	case record.DirectionAppeared:
		return fmt.Sprintf("log of %s tells of %s, which it did not before (%s)%s", f.Entity.Name, topic, often(f.Observed, f.Unit), quoted(f))
	case record.DirectionVanished:
		return fmt.Sprintf("log of %s tells no longer of %s, usually %s%s", f.Entity.Name, topic, often(f.Expected, f.Unit), quoted(f))
	case record.DirectionUp:
		how = "more often"
	case record.DirectionDown:
		how = "less often"
	}
	return fmt.Sprintf("log of %s tells %s of %s: %s, usually %s%s", f.Entity.Name, how, topic, often(f.Observed, f.Unit), often(f.Expected, f.Unit), quoted(f))
}
