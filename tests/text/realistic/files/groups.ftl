### File comment

## Group

-brand = Firefox
about = About { -brand }
welcome = Welcome to { -brand }, { $user }!
