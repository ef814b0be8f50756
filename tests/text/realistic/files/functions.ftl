time = The time is { DATETIME($now, hour: "numeric", minute: "numeric") }.
price = It costs { NUMBER($p, minimumFractionDigits: 2) } euros.
ref = See { about.title } or { message }
about = x
    .title = About
