# A comment
-brand = Acme
hello = Hello, { $name }! Welcome to { -brand }.
    .title = A friendly title
emails = You have { $count ->
    [one] one email
   *[other] { $count } emails
 } in your box.
about =
    A first paragraph
    on two lines.

    A second one with { "{" } a brace and { NUMBER($n) } items.
