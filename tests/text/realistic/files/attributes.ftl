button = Click here
    .title = The title of the button
    .accesskey = C
    .aria-label = A label
input =
    .placeholder = Your name
