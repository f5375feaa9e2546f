package alert

import "strings"

// plain makes a sender's text harmless in the Markdown of WeCom and DingTalk.
// Neither documents a way to escape, so what would be markup (bold, code, links,
// images, mentions such as <@all>, colours) is written with the full-width form
// of its letter. The text is one line behind a label, so that a mark at the start
// of a line cannot come from it.
var plain = strings.NewReplacer("*", "＊", "`", "｀", "<", "＜", "[", "［", "]", "］")

// markdown writes a message of at most limit bytes. Facts and example come
// before the hint; what does not fit is cut, visibly.
func markdown(m *Message, limit int, title, fact string) string {
	var b strings.Builder
	b.WriteString(title)
	line := func(label, value string, most int) {
		if value == "" {
			return
		}
		head := fact + plain.Replace(label) + ": "
		room := limit - b.Len() - len(head)
		if most = min(most, room); most < len(cutMark) {
			return
		}
		b.WriteString(head)
		b.WriteString(cut(plain.Replace(value), most))
	}
	hint := min(len(plain.Replace(m.Example.Hint)), limit/8)
	line("What", m.Example.Text, limit/3)
	for _, f := range m.facts() {
		// Room for the hint and for the facts that follow.
		line(f.Name, f.Value, min(limit/12, limit-b.Len()-hint-100))
	}
	line("Next", m.Example.Hint, limit/8)
	return b.String()
}
