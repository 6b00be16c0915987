import './base.css';
import './form.css';
