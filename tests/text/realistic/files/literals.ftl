literal = A { "{" }brace{ "}" } and { "\u00e9" } here
empty-start = { "" }   Spaces first
bracket = { "[" }note] text
